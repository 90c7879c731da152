"""What TensorBoards and viewers share: a Deployment of one small Pod, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clew.kube.controller import status_reasons
from clew.kube.controller.model import Decision, World, is_stopped, manifest, taken
from clew.kube.controller.status_reasons import Reason
from clew.kube.objects import Json, Object, labels_of
from clew.kube.resources.node_affinity import FOLLOWS, rank

RESOURCES: Json = {
    "requests": {"cpu": "50m", "memory": "128Mi"},
    "limits": {"cpu": "1", "memory": "2Gi"},
}
"""Small, and there: a quota on either admits no Pod that does not say what it takes."""


def deployment(parent: Object, name: str, *, pod: Json, selector: Mapping[str, str]) -> Json:
    """One Pod at a time: two could not have the volume, and a quota may have room for one."""
    labels = {**labels_of(parent), **selector, FOLLOWS: rank(parent)}
    spec = {
        "replicas": 0 if is_stopped(parent) else 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": dict(selector)},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return manifest(parent, "apps/v1", "Deployment", name, spec, selector)


def decided(
    parent: Object, world: World, children: Sequence[Json], name: str
) -> tuple[Reason, Decision]:
    """Why it is ready or not, and the decision but for its status, which each kind writes."""
    if other := taken(parent, children, world):
        text = f"Another resource already has the {other.kind} {other.name}. Choose another name."
        return Reason("NameInUse", text), Decision({})
    return reason(parent, world, name), Decision({}, tuple(children))


def reason(parent: Object, world: World, name: str) -> Reason:
    """Of several Pods (one leaves, one comes) the one that is ready counts, else the newest."""
    stopped = is_stopped(parent)
    found = [status_reasons.of_pod(pod, world.events, stopped=stopped) for pod in world.pods]
    if status_reasons.RUNNING in found:
        return status_reasons.RUNNING
    if found:
        return found[-1]
    if stopped:
        return status_reasons.STOPPED
    own = world.own(parent, "Deployment", name)
    return status_reasons.of_workload(own.status if own else {}, world.events)
