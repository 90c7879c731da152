"""A PVCViewer: a file browser over one claim, and the ways to it. Its claim alone is enough."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import replace

from clew.kube import access_tokens
from clew.kube.controller import status_reasons
from clew.kube.controller.model import Decision, World
from clew.kube.controller.options import Options
from clew.kube.controller.status_reasons import Reason
from clew.kube.objects import Json, Object, dig, name_of, namespace_of, written
from clew.kube.proxy_route import Way, seconds
from clew.kube.resources.deployments import RESOURCES, decided, deployment
from clew.kube.resources.name_check import fault
from clew.kube.resources.network_policies import network_policy
from clew.kube.resources.node_affinity import FOLLOWS, node_for, rank, required_on
from clew.kube.resources.notebooks import FS_GROUP
from clew.kube.resources.pod_security import restrict
from clew.kube.resources.services import service, virtual_service

PORT = 8080
PREFIX = "/pvcviewer"
VOLUME = "viewer-volume"
_DATA = "/data"


def child_name(name: str) -> str:
    return f"pvcviewer-{name}"


def prefix(viewer: Object) -> str:
    base = str(dig(viewer, "spec", "networking", "basePrefix") or PREFIX).rstrip("/")
    return f"{base}/{namespace_of(viewer)}/{name_of(viewer)}"


def decide(viewer: Object, world: World, options: Options) -> Decision:
    wrong = fault("PVCViewer", name_of(viewer))
    if wrong:
        return Decision(_status(viewer, world, Reason("InvalidName", wrong)))
    pod = _pod(viewer, options)
    if world.restricted:
        restrict(pod)
    # A longer one, /notebook/OTHER/NAME, would lead Istio's gateway from another's notebook here.
    if not re.fullmatch("(/[^/]+)?/?", str(dig(viewer, "spec", "networking", "basePrefix") or "")):
        text = "Its networking.basePrefix must be of one part, such as /files."
        return Decision(_status(viewer, world, Reason("InvalidSpec", text)))
    claim = str(dig(viewer, "spec", "pvc") or "")
    if claim not in [_claim(volume) for volume in pod.get("volumes") or ()]:
        text = f"No volume of its podSpec is the claim {claim}."
        return Decision(_status(viewer, world, Reason("InvalidSpec", text)))
    follows = dig(viewer, "spec", "rwoScheduling") is not False
    if follows and (node := node_for(claim, rank(viewer), world)):
        pod["affinity"] = required_on(node, pod.get("affinity"))
    children = _children(viewer, pod, options)
    why, decision = decided(viewer, world, children, child_name(name_of(viewer)))
    return replace(decision, status=_status(viewer, world, why))


def _children(viewer: Object, pod: Json, options: Options) -> Sequence[Json]:
    name = child_name(name_of(viewer))
    networking = dig(viewer, "spec", "networking") or {}
    selector = {
        "app.kubernetes.io/name": name_of(viewer),
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/part-of": "pvc-viewer",
    }
    target = networking.get("targetPort") or _port(pod)
    way = Way(
        networking.get("rewrite") or None,
        timeout=seconds(networking.get("timeout") or ""),
        base=(networking.get("basePrefix") or "").strip("/") or None,
        access=bool(options.access_key),
    )
    pods = {**selector, FOLLOWS: rank(viewer)}
    made = [
        service(viewer, name, port="http", target=target, selector=selector, way=way),
        network_policy(viewer, name, selector=pods, options=options),
    ]
    if options.istio:
        path = f"{prefix(viewer)}/"
        made.append(
            virtual_service(
                viewer,
                name,
                to=name,
                prefix=path,
                rewrite=networking.get("rewrite") or path,
                timeout=networking.get("timeout") or "",
                headers=access_tokens.headers_for(viewer, options.access_key) or None,
                istio=options.istio,
                options=options,
            )
        )
    return [*made, deployment(viewer, name, pod=pod, selector=selector)]


def _port(pod: Object) -> int:
    ports = pod["containers"][0].get("ports") or [{}]
    return int(ports[0].get("containerPort", PORT))


def _claim(volume: Object) -> str:
    return str(dig(volume, "persistentVolumeClaim", "claimName") or "")


def _pod(viewer: Object, options: Options) -> Json:
    """The Pod that was asked for, as it is; else the configured one, else our file browser."""
    given = dig(viewer, "spec", "podSpec")
    if given and given.get("containers"):
        return copy.deepcopy(dict(given))
    volume = {
        "name": VOLUME,
        "persistentVolumeClaim": {"claimName": dig(viewer, "spec", "pvc")},
    }
    pod: Json = (
        copy.deepcopy(options.viewer_pod) if options.viewer_pod else _browser(viewer, options)
    )
    pod["volumes"] = [*pod.get("volumes", ()), volume]
    return pod


def _browser(viewer: Object, options: Options) -> Json:
    rewritten = dig(viewer, "spec", "networking", "rewrite")
    path = str(rewritten or f"{prefix(viewer)}/")
    # The notebooks' group: it may write where they may. What is theirs already is not gone through.
    group = {"fsGroup": FS_GROUP, "fsGroupChangePolicy": "OnRootMismatch"}
    args = ["--prefix", path, "--host", "0.0.0.0", "--port", str(PORT)]  # noqa: S104
    for token in access_tokens.headers_for(viewer, options.access_key).values():
        args += ["--access-digest", access_tokens.digest(token)]
    pod: Json = {
        "automountServiceAccountToken": False,
        **({"securityContext": group} if options.fs_group else {}),
        "containers": [
            {
                "name": "pvcviewer",
                "image": options.viewer_image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["clew", "viewer", _DATA],
                "args": args,
                "ports": [{"containerPort": PORT, "protocol": "TCP"}],
                "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 2},
                "volumeMounts": [{"name": VOLUME, "mountPath": _DATA}],
                "resources": RESOURCES,
            }
        ],
    }
    return restrict(pod)


def _status(viewer: Object, world: World, reason: Reason) -> Json:
    """`Ready` in our words, then what the Deployment says of itself."""
    found = world.own(viewer, "Deployment", child_name(name_of(viewer)))
    ready = status_reasons.ready(viewer, reason, written(world.now))
    fields = ("type", "status", "reason", "message", "lastUpdateTime", "lastTransitionTime")
    own = (found.status.get("conditions") or ()) if found else ()
    return {
        "ready": reason is status_reasons.RUNNING,
        "url": f"{prefix(viewer)}/",
        "conditions": [ready, *({f: c[f] for f in fields if c.get(f)} for c in own)],
    }
