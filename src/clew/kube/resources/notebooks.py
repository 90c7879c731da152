"""A Notebook: a StatefulSet of one Pod, its Service, NetworkPolicy and VirtualService.

Children, labels, ports and variables are those of upstream. Unlike there, edits of labels and
annotations reach the Pod, a broken Pod does not block an edit, and the status depends on the
current state only, not on the order of events.
"""

import copy
import json
from collections.abc import Mapping

from clew.kube import workload_tokens
from clew.kube.controller import status_reasons
from clew.kube.controller.model import (
    RESTART,
    STOPPED,
    Child,
    ClusterState,
    Decision,
    find_name_conflict,
    is_stopped,
    make_manifest,
)
from clew.kube.controller.options import Options
from clew.kube.controller.status_reasons import Reason
from clew.kube.objects import (
    Json,
    Object,
    annotations_of,
    dig,
    format_time,
    is_deleting,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
)
from clew.kube.proxy_route import ProxyRoute
from clew.kube.resources.name_check import check_name
from clew.kube.resources.network_policies import make_network_policy
from clew.kube.resources.pod_security import restrict
from clew.kube.resources.services import make_service, make_virtual_service

REWRITE = "notebooks.kubeflow.org/http-rewrite-uri"
HEADERS = "notebooks.kubeflow.org/http-headers-request-set"
PORT = 8888
FS_GROUP = 100


def path_prefix(notebook: Object) -> str:
    return f"/notebook/{namespace_of(notebook)}/{name_of(notebook)}"


def decide(notebook: Object, cluster: ClusterState, options: Options) -> Decision:
    wrong = check_name("Notebook", name_of(notebook))
    spec = dig(notebook, "spec", "template", "spec")
    if not wrong and not dig(spec, "containers"):
        wrong = "It has no container: spec.template.spec.containers is empty."
    if wrong:
        name = "InvalidSpec" if wrong.startswith("It") else "InvalidName"
        return Decision(_status(notebook, cluster, Reason(name, wrong)))
    children = _children(notebook, spec, cluster, options)
    if other := find_name_conflict(notebook, children, cluster):
        text = f"Another resource already has the {other.kind} {other.name}. Choose another name."
        return Decision(_status(notebook, cluster, Reason("NameInUse", text)))
    restart = annotations_of(notebook).get(RESTART) == "true"
    workload = cluster.owned_child(notebook, "StatefulSet", name_of(notebook))
    again = [pod for pod in cluster.pods if restart or _blocks_update(pod, workload)]
    return Decision(
        _status(notebook, cluster, _reason(notebook, cluster)),
        children,
        restart=tuple(dict(pod) for pod in again if not is_deleting(pod)),
        annotations={RESTART: None} if restart else {},
    )


def _blocks_update(pod: Object, workload: Child | None) -> bool:
    """Whether a Pod that is not ready blocks the update of its StatefulSet. With OrderedReady, as
    upstream creates it, the StatefulSet waits until the old Pod is ready, which may never be."""
    if workload is None or workload.policy != "OrderedReady" or is_ready(pod):
        return False
    wanted = workload.status.get("updateRevision")
    known = workload.status.get("observedGeneration") == workload.generation
    return bool(wanted) and known and labels_of(pod).get("controller-revision-hash") != wanted


def _children(
    notebook: Object, spec: Object, cluster: ClusterState, options: Options
) -> tuple[Json, ...]:
    name = name_of(notebook)
    selector = {"statefulset": name}
    pod = _pod(notebook, spec, cluster, options)
    ports = pod["containers"][0]["ports"]
    found = cluster.children.get(("StatefulSet", name))
    made = [
        make_service(
            notebook,
            name,
            port=f"http-{name}",
            target=ports[0].get("containerPort", PORT),
            selector=selector,
            route=ProxyRoute(
                rewrite=annotations_of(notebook).get(REWRITE) or None,
                headers=parse_headers(annotations_of(notebook).get(HEADERS)),
                access=bool(options.access_key),
            ),
        ),
        make_network_policy(notebook, name, selector=selector, options=options),
    ]
    if options.istio:
        path = f"{path_prefix(notebook)}/"
        made.append(
            make_virtual_service(
                notebook,
                f"notebook-{namespace_of(notebook)}-{name}",
                to=name,
                prefix=path,
                rewrite=annotations_of(notebook).get(REWRITE) or path,
                headers={
                    **parse_headers(annotations_of(notebook).get(HEADERS)),
                    **workload_tokens.headers_for(notebook, options.access_key),
                },
                istio=options.istio,
                options=options,
            )
        )
    workload = {
        "replicas": 0 if is_stopped(notebook) else 1,
        "selector": {"matchLabels": selector},
        # With the usual order an edit would wait for a broken Pod to become ready.
        "podManagementPolicy": (found and found.policy) or "Parallel",
        "template": {
            "metadata": {
                "labels": {"notebook-name": name, **labels_of(notebook), **selector},
                "annotations": _pod_annotations(annotations_of(notebook)),
            },
            "spec": pod,
        },
    }
    labels = {"notebook-name": name, **selector}
    made.append(make_manifest(notebook, "apps/v1", "StatefulSet", name, workload, labels))
    return tuple(made)


def _pod(notebook: Object, spec: Object, cluster: ClusterState, options: Options) -> Json:
    """The user's Pod; its first container gets a port, NB_PREFIX and the digest of its token."""
    pod: Json = copy.deepcopy(dict(spec))
    first = pod["containers"][0]
    first.setdefault("workingDir", "/home/jovyan")
    if not first.get("ports"):
        first["ports"] = [{"containerPort": PORT, "name": "notebook-port", "protocol": "TCP"}]
    added = {"NB_PREFIX": path_prefix(notebook)}
    for token in workload_tokens.headers_for(notebook, options.access_key).values():
        added[workload_tokens.VARIABLE] = workload_tokens.token_digest(token)
    variables = first.setdefault("env", [])
    given = {variable.get("name") for variable in variables}
    variables += [{"name": n, "value": v} for n, v in added.items() if n not in given]
    if options.fs_group and pod.get("securityContext") is None:
        pod["securityContext"] = {"fsGroup": FS_GROUP}
    return restrict(pod) if cluster.restricted else pod


def _pod_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """The annotations copied to the Pod. Not our own: each change would restart the Pod."""
    return {
        key: value
        for key, value in annotations.items()
        if "kubectl" not in key
        and "notebook" not in key
        and key != STOPPED
        and not key.startswith("clew.dev/")
    }


def parse_headers(text: str | None) -> dict[str, str]:
    """The headers in the JSON of an annotation; invalid values are ignored."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): value for name, value in found.items() if isinstance(value, str)}


def _reason(notebook: Object, cluster: ClusterState) -> Reason:
    stopped = is_stopped(notebook)
    if cluster.pods:
        return status_reasons.reason_of_pod(cluster.pods[-1], cluster.events, stopped=stopped)
    if stopped:
        return status_reasons.STOPPED
    found = cluster.owned_child(notebook, "StatefulSet", name_of(notebook))
    return status_reasons.reason_of_workload(found.status if found else {}, cluster.events)


def _status(notebook: Object, cluster: ClusterState, reason: Reason) -> Json:
    pod = cluster.pods[-1] if cluster.pods else None
    found = cluster.owned_child(notebook, "StatefulSet", name_of(notebook))
    return {
        "conditions": _conditions(notebook, pod, reason, format_time(cluster.now)),
        "readyReplicas": int((found and found.status.get("readyReplicas")) or 0),
        "containerState": _container_state(notebook, pod) if pod else {},
    }


def _conditions(notebook: Object, pod: Object | None, reason: Reason, now: str) -> list[Json]:
    """The conditions of the Pod, in their order; `Ready` has our reason and message."""
    ready = status_reasons.ready_condition(notebook, reason, now)
    mirrored: list[Json] = []
    for found in dig(pod, "status", "conditions") or ():
        kept = ready if found["type"] == "Ready" else {}
        for field in ("type", "status", "reason", "message", "lastTransitionTime", "lastProbeTime"):
            if found.get(field) and field not in kept:
                kept[field] = found[field]
        mirrored.append(kept)
    if not any(found is ready for found in mirrored):
        mirrored.insert(0, ready)
    since = dig(pod, "metadata", "creationTimestamp")
    for found in mirrored:
        found.setdefault("lastTransitionTime", since)
        found.setdefault("lastProbeTime", found["lastTransitionTime"])
    return mirrored


def _container_state(notebook: Object, pod: Object) -> Json:
    """The state of the container named like the Notebook, as upstream; else of the first."""
    found = {c["name"]: c for c in dig(pod, "status", "containerStatuses") or ()}
    first = notebook["spec"]["template"]["spec"]["containers"][0]["name"]
    container = found.get(name_of(notebook)) or found.get(first) or {}
    return dict(container.get("state") or {})
