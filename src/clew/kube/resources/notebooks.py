"""A Notebook: a StatefulSet of one Pod with its volumes, and the ways to it.

Children, labels, ports and variables are upstream's. Unlike there, edits of labels and annotations
reach the Pod, a broken Pod does not keep an edit from it, and the status is written from what is
true and not from when it was asked.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping

from clew.kube import access_tokens
from clew.kube.controller import status_reasons
from clew.kube.controller.model import (
    RESTART,
    STOPPED,
    Child,
    Decision,
    World,
    is_stopped,
    manifest,
    taken,
)
from clew.kube.controller.options import Options
from clew.kube.controller.status_reasons import Reason
from clew.kube.objects import (
    Json,
    Object,
    annotations_of,
    dig,
    is_leaving,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    written,
)
from clew.kube.proxy_route import Way
from clew.kube.resources.name_check import fault
from clew.kube.resources.network_policies import network_policy
from clew.kube.resources.pod_security import restrict
from clew.kube.resources.services import service, virtual_service

REWRITE = "notebooks.kubeflow.org/http-rewrite-uri"
HEADERS = "notebooks.kubeflow.org/http-headers-request-set"
PORT = 8888
FS_GROUP = 100


def prefix(notebook: Object) -> str:
    return f"/notebook/{namespace_of(notebook)}/{name_of(notebook)}"


def decide(notebook: Object, world: World, options: Options) -> Decision:
    wrong = fault("Notebook", name_of(notebook))
    spec = dig(notebook, "spec", "template", "spec")
    if not wrong and not dig(spec, "containers"):
        wrong = "It has no container: spec.template.spec.containers is empty."
    if wrong:
        name = "InvalidSpec" if wrong.startswith("It") else "InvalidName"
        return Decision(_status(notebook, world, Reason(name, wrong)))
    children = _children(notebook, spec, world, options)
    if other := taken(notebook, children, world):
        text = f"Another resource already has the {other.kind} {other.name}. Choose another name."
        return Decision(_status(notebook, world, Reason("NameInUse", text)))
    restart = annotations_of(notebook).get(RESTART) == "true"
    workload = world.own(notebook, "StatefulSet", name_of(notebook))
    again = [pod for pod in world.pods if restart or _keeps_an_edit_waiting(pod, workload)]
    return Decision(
        _status(notebook, world, _reason(notebook, world)),
        children,
        restart=tuple(dict(pod) for pod in again if not is_leaving(pod)),
        annotations={RESTART: None} if restart else {},
    )


def _keeps_an_edit_waiting(pod: Object, workload: Child | None) -> bool:
    """A StatefulSet that was made elsewhere waits for its Pod to be ready, before it makes the one
    that is wanted by now; a broken one never is."""
    if workload is None or workload.policy != "OrderedReady" or is_ready(pod):
        return False
    wanted = workload.status.get("updateRevision")
    known = workload.status.get("observedGeneration") == workload.generation
    return bool(wanted) and known and labels_of(pod).get("controller-revision-hash") != wanted


def _children(notebook: Object, spec: Object, world: World, options: Options) -> tuple[Json, ...]:
    name = name_of(notebook)
    selector = {"statefulset": name}
    pod = _pod(notebook, spec, world, options)
    ports = pod["containers"][0]["ports"]
    found = world.children.get(("StatefulSet", name))
    made = [
        service(
            notebook,
            name,
            port=f"http-{name}",
            target=ports[0].get("containerPort", PORT),
            selector=selector,
            way=Way(
                rewrite=annotations_of(notebook).get(REWRITE) or None,
                headers=headers(annotations_of(notebook).get(HEADERS)),
                access=bool(options.access_key),
            ),
        ),
        network_policy(notebook, name, selector=selector, options=options),
    ]
    if options.istio:
        path = f"{prefix(notebook)}/"
        made.append(
            virtual_service(
                notebook,
                f"notebook-{namespace_of(notebook)}-{name}",
                to=name,
                prefix=path,
                rewrite=annotations_of(notebook).get(REWRITE) or path,
                headers={
                    **headers(annotations_of(notebook).get(HEADERS)),
                    **access_tokens.headers_for(notebook, options.access_key),
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
                "annotations": _copied(annotations_of(notebook)),
            },
            "spec": pod,
        },
    }
    labels = {"notebook-name": name, **selector}
    made.append(manifest(notebook, "apps/v1", "StatefulSet", name, workload, labels))
    return tuple(made)


def _pod(notebook: Object, spec: Object, world: World, options: Options) -> Json:
    """The user's Pod, with what its first container needs to be found, and to know who asks."""
    pod: Json = copy.deepcopy(dict(spec))
    first = pod["containers"][0]
    first.setdefault("workingDir", "/home/jovyan")
    if not first.get("ports"):
        first["ports"] = [{"containerPort": PORT, "name": "notebook-port", "protocol": "TCP"}]
    added = {"NB_PREFIX": prefix(notebook)}
    for token in access_tokens.headers_for(notebook, options.access_key).values():
        added[access_tokens.VARIABLE] = access_tokens.digest(token)
    variables = first.setdefault("env", [])
    given = {variable.get("name") for variable in variables}
    variables += [{"name": n, "value": v} for n, v in added.items() if n not in given]
    if options.fs_group and pod.get("securityContext") is None:
        pod["securityContext"] = {"fsGroup": FS_GROUP}
    return restrict(pod) if world.restricted else pod


def _copied(annotations: Mapping[str, str]) -> dict[str, str]:
    """Those that are the Pod's business. Not our own: each change would start the Pod again."""
    return {
        key: value
        for key, value in annotations.items()
        if "kubectl" not in key
        and "notebook" not in key
        and key != STOPPED
        and not key.startswith("clew.dev/")
    }


def headers(text: str | None) -> dict[str, str]:
    """What an annotation says in JSON; anything else is no header."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): value for name, value in found.items() if isinstance(value, str)}


def _reason(notebook: Object, world: World) -> Reason:
    stopped = is_stopped(notebook)
    if world.pods:
        return status_reasons.of_pod(world.pods[-1], world.events, stopped=stopped)
    if stopped:
        return status_reasons.STOPPED
    found = world.own(notebook, "StatefulSet", name_of(notebook))
    return status_reasons.of_workload(found.status if found else {}, world.events)


def _status(notebook: Object, world: World, reason: Reason) -> Json:
    pod = world.pods[-1] if world.pods else None
    found = world.own(notebook, "StatefulSet", name_of(notebook))
    return {
        "conditions": _conditions(notebook, pod, reason, written(world.now)),
        "readyReplicas": int((found and found.status.get("readyReplicas")) or 0),
        "containerState": _container_state(notebook, pod) if pod else {},
    }


def _conditions(notebook: Object, pod: Object | None, reason: Reason, now: str) -> list[Json]:
    """The Pod's own, in their order; what `Ready` says of why is said in our words."""
    ready = status_reasons.ready(notebook, reason, now)
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
    """Of the container that is named like the Notebook, as upstream; else of the first."""
    found = {c["name"]: c for c in dig(pod, "status", "containerStatuses") or ()}
    first = notebook["spec"]["template"]["spec"]["containers"][0]["name"]
    container = found.get(name_of(notebook)) or found.get(first) or {}
    return dict(container.get("state") or {})
