"""The Deployment of one small Pod that TensorBoards and viewers share, and its status."""

from collections.abc import Mapping, Sequence

from clew.kube.controller import status_reasons
from clew.kube.controller.model import (
    ClusterState,
    Decision,
    find_name_conflict,
    is_stopped,
    make_manifest,
)
from clew.kube.controller.status_reasons import Reason
from clew.kube.objects import Json, Object, labels_of
from clew.kube.resources.node_affinity import FOLLOWS_LABEL, follower_rank

RESOURCES: Json = {
    "requests": {"cpu": "50m", "memory": "128Mi"},
    "limits": {"cpu": "1", "memory": "2Gi"},
}
"""Always set: with a quota on either, Kubernetes rejects Pods without requests and limits."""


def make_deployment(parent: Object, name: str, *, pod: Json, selector: Mapping[str, str]) -> Json:
    """One Pod at a time: two could not share the volume, and a quota may have room for one."""
    labels = {**labels_of(parent), **selector, FOLLOWS_LABEL: follower_rank(parent)}
    spec = {
        "replicas": 0 if is_stopped(parent) else 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": dict(selector)},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return make_manifest(parent, "apps/v1", "Deployment", name, spec, selector)


def decide_deployment(
    parent: Object, cluster: ClusterState, children: Sequence[Json], name: str
) -> tuple[Reason, Decision]:
    """Why it is ready or not, and the decision without the status, which each kind writes."""
    if other := find_name_conflict(parent, children, cluster):
        text = f"Another resource already has the {other.kind} {other.name}. Choose another name."
        return Reason("NameInUse", text), Decision({})
    return deployment_reason(parent, cluster, name), Decision({}, tuple(children))


def deployment_reason(parent: Object, cluster: ClusterState, name: str) -> Reason:
    """Of several Pods (during a replacement) a ready one counts, else the newest."""
    stopped = is_stopped(parent)
    found = [
        status_reasons.reason_of_pod(pod, cluster.events, stopped=stopped) for pod in cluster.pods
    ]
    if status_reasons.RUNNING in found:
        return status_reasons.RUNNING
    if found:
        return found[-1]
    if stopped:
        return status_reasons.STOPPED
    own = cluster.owned_child(parent, "Deployment", name)
    return status_reasons.reason_of_workload(own.status if own else {}, cluster.events)
