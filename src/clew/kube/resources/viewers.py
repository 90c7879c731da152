"""A PVCViewer: a Deployment of a file browser over one claim, and its Service."""

import copy
import re
from collections.abc import Sequence
from dataclasses import replace

from clew.kube import workload_tokens
from clew.kube.controller import status_reasons
from clew.kube.controller.model import ClusterState, Decision
from clew.kube.controller.options import Options
from clew.kube.controller.status_reasons import Reason
from clew.kube.objects import Json, Object, dig, format_time, name_of, namespace_of
from clew.kube.proxy_route import ProxyRoute, parse_duration
from clew.kube.resources.deployments import RESOURCES, decide_deployment, make_deployment
from clew.kube.resources.name_check import check_name
from clew.kube.resources.network_policies import make_network_policy
from clew.kube.resources.node_affinity import FOLLOWS_LABEL, follower_rank, node_for, require_node
from clew.kube.resources.notebooks import FS_GROUP
from clew.kube.resources.pod_security import restrict
from clew.kube.resources.services import make_service, make_virtual_service

PORT = 8080
PREFIX = "/pvcviewer"
VOLUME = "viewer-volume"
_DATA = "/data"


def child_name(name: str) -> str:
    return f"pvcviewer-{name}"


def path_prefix(viewer: Object) -> str:
    base = str(dig(viewer, "spec", "networking", "basePrefix") or PREFIX).rstrip("/")
    return f"{base}/{namespace_of(viewer)}/{name_of(viewer)}"


def decide(viewer: Object, cluster: ClusterState, options: Options) -> Decision:
    wrong = check_name("PVCViewer", name_of(viewer))
    if wrong:
        return Decision(_status(viewer, cluster, Reason("InvalidName", wrong)))
    pod = _pod(viewer, options)
    if cluster.restricted:
        restrict(pod)
    # A longer one, e.g. /notebook/OTHER/NAME, would take over the route of a foreign notebook.
    if not re.fullmatch("(/[^/]+)?/?", str(dig(viewer, "spec", "networking", "basePrefix") or "")):
        text = "Its networking.basePrefix must be of one part, such as /files."
        return Decision(_status(viewer, cluster, Reason("InvalidSpec", text)))
    claim = str(dig(viewer, "spec", "pvc") or "")
    if claim not in [_claim(volume) for volume in pod.get("volumes") or ()]:
        text = f"No volume of its podSpec is the claim {claim}."
        return Decision(_status(viewer, cluster, Reason("InvalidSpec", text)))
    follows = dig(viewer, "spec", "rwoScheduling") is not False
    if follows and (node := node_for(claim, follower_rank(viewer), cluster)):
        pod["affinity"] = require_node(node, pod.get("affinity"))
    children = _children(viewer, pod, options)
    why, decision = decide_deployment(viewer, cluster, children, child_name(name_of(viewer)))
    return replace(decision, status=_status(viewer, cluster, why))


def _children(viewer: Object, pod: Json, options: Options) -> Sequence[Json]:
    name = child_name(name_of(viewer))
    networking = dig(viewer, "spec", "networking") or {}
    selector = {
        "app.kubernetes.io/name": name_of(viewer),
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/part-of": "pvc-viewer",
    }
    target = networking.get("targetPort") or _port(pod)
    route = ProxyRoute(
        networking.get("rewrite") or None,
        timeout=parse_duration(networking.get("timeout") or ""),
        base=(networking.get("basePrefix") or "").strip("/") or None,
        access=bool(options.access_key),
    )
    pods = {**selector, FOLLOWS_LABEL: follower_rank(viewer)}
    made = [
        make_service(viewer, name, port="http", target=target, selector=selector, route=route),
        make_network_policy(viewer, name, selector=pods, options=options),
    ]
    if options.istio:
        path = f"{path_prefix(viewer)}/"
        made.append(
            make_virtual_service(
                viewer,
                name,
                to=name,
                prefix=path,
                rewrite=networking.get("rewrite") or path,
                timeout=networking.get("timeout") or "",
                headers=workload_tokens.headers_for(viewer, options.access_key) or None,
                istio=options.istio,
                options=options,
            )
        )
    return [*made, make_deployment(viewer, name, pod=pod, selector=selector)]


def _port(pod: Object) -> int:
    ports = pod["containers"][0].get("ports") or [{}]
    return int(ports[0].get("containerPort", PORT))


def _claim(volume: Object) -> str:
    return str(dig(volume, "persistentVolumeClaim", "claimName") or "")


def _pod(viewer: Object, options: Options) -> Json:
    """The Pod of its spec, unchanged; else the configured one, else our file browser."""
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
    path = str(rewritten or f"{path_prefix(viewer)}/")
    # The group of notebooks, to write where they may. OnRootMismatch: no chown of all files.
    group = {"fsGroup": FS_GROUP, "fsGroupChangePolicy": "OnRootMismatch"}
    args = ["--prefix", path, "--host", "0.0.0.0", "--port", str(PORT)]  # noqa: S104
    for token in workload_tokens.headers_for(viewer, options.access_key).values():
        args += ["--access-digest", workload_tokens.token_digest(token)]
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


def _status(viewer: Object, cluster: ClusterState, reason: Reason) -> Json:
    """The `Ready` condition with our reason, then the conditions of the Deployment."""
    found = cluster.owned_child(viewer, "Deployment", child_name(name_of(viewer)))
    ready = status_reasons.ready_condition(viewer, reason, format_time(cluster.now))
    fields = ("type", "status", "reason", "message", "lastUpdateTime", "lastTransitionTime")
    conditions = (found.status.get("conditions") or ()) if found else ()
    return {
        "ready": reason is status_reasons.RUNNING,
        "url": f"{path_prefix(viewer)}/",
        "conditions": [ready, *({f: c[f] for f in fields if c.get(f)} for c in conditions)],
    }
