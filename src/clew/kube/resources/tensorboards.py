"""A Tensorboard: a Deployment that reads logs from a claim or an object store, and its Service."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.kube.controller import status_reasons
from clew.kube.controller.model import ClusterState, Decision
from clew.kube.controller.options import Options
from clew.kube.controller.status_reasons import Reason
from clew.kube.objects import Json, Object, annotations_of, dig, format_time, name_of, namespace_of
from clew.kube.proxy_route import ProxyRoute
from clew.kube.resources.deployments import RESOURCES, decide_deployment, make_deployment
from clew.kube.resources.name_check import check_name
from clew.kube.resources.network_policies import make_network_policy
from clew.kube.resources.node_affinity import FOLLOWS_LABEL, follower_rank, node_for, require_node
from clew.kube.resources.pod_security import restrict
from clew.kube.resources.services import make_service, make_virtual_service

SECRET = "clew.dev/secret"  # noqa: S105 - the annotation that names one
"""Names the Secret whose entries become variables: AWS_ACCESS_KEY_ID and the like."""
S3_SECRET = "clew-s3"  # noqa: S105
GCP_SECRET = "user-gcp-sa"  # noqa: S105
LEGACY_CLAIM = "tb-volume"
PORT = 6006
_LOGS = "/tensorboard_logs/"


@dataclass(frozen=True)
class LogSource:
    """The source of logs."""

    directory: str
    claim: str = ""
    path: str = ""
    mount: str = ""
    fault: str = ""


def parse_logspath(logspath: str) -> LogSource:
    """As upstream: a path without a scheme is one in the claim `tb-volume`."""
    if logspath.startswith("pvc://"):
        claim, _, path = logspath.removeprefix("pvc://").partition("/")
        path = path.strip("/")
        if not claim:
            return LogSource("", fault="The logspath names no claim: write pvc://CLAIM/PATH.")
        if path and (posixpath.normpath(path).startswith("..") or ".." in path.split("/")):
            return LogSource("", fault="The logspath leads out of its volume.")
        return LogSource(_LOGS, claim, path, _LOGS)
    if "://" in logspath or logspath.startswith("/cns/"):
        bucket = logspath.startswith("s3://") and logspath.count("/") == 2
        return LogSource(
            f"{logspath}/" if bucket else logspath
        )  # TensorBoard fails without the slash
    if not logspath.startswith("/"):
        return LogSource("", fault="The logspath must be pvc://CLAIM/PATH or s3://BUCKET/PATH.")
    return LogSource(logspath, LEGACY_CLAIM, "", logspath)


def path_prefix(board: Object) -> str:
    return f"/tensorboard/{namespace_of(board)}/{name_of(board)}"


def decide(board: Object, cluster: ClusterState, options: Options) -> Decision:
    name = name_of(board)
    logs = parse_logspath(str(dig(board, "spec", "logspath") or ""))
    if wrong := check_name("Tensorboard", name):
        return Decision(_status(board, cluster, Reason("InvalidName", wrong)))
    if logs.fault:
        return Decision(_status(board, cluster, Reason("InvalidSpec", logs.fault)))
    why, decision = decide_deployment(
        board, cluster, _children(board, logs, cluster, options), name
    )
    return replace(decision, status=_status(board, cluster, why))


def _children(
    board: Object, logs: LogSource, cluster: ClusterState, options: Options
) -> Sequence[Json]:
    name = name_of(board)
    selector = {"app": name}
    route = ProxyRoute(rewrite="/")
    pods = {**selector, FOLLOWS_LABEL: follower_rank(board)}
    made = [
        make_service(board, name, port=f"http-{name}", target=PORT, selector=selector, route=route),
        make_network_policy(board, name, selector=pods, options=options),
    ]
    if options.istio:
        made.append(
            make_virtual_service(
                board,
                name,
                to=name,
                prefix=f"{path_prefix(board)}/",
                rewrite="/",
                timeout="300s",
                istio=options.istio,
                options=options,
            )
        )
    pod = _pod(board, logs, cluster, options)
    return [*made, make_deployment(board, name, pod=pod, selector=selector)]


def _pod(board: Object, logs: LogSource, cluster: ClusterState, options: Options) -> Json:
    container: Json = {
        "name": "tensorboard",
        "image": options.tensorboard_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/local/bin/tensorboard"],
        "args": [f"--logdir={logs.directory}", "--bind_all"],
        "workingDir": "/",
        "ports": [{"containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 2},
        "resources": RESOURCES,
    }
    pod: Json = {"restartPolicy": "Always", "containers": [container]}
    if logs.claim:
        mount = {"name": "tbpd", "mountPath": logs.mount, "readOnly": True}
        container["volumeMounts"] = [{**mount, **({"subPath": logs.path} if logs.path else {})}]
        claim = {"claimName": logs.claim}
        pod["volumes"] = [{"name": "tbpd", "persistentVolumeClaim": claim}]
        node = (
            node_for(logs.claim, follower_rank(board), cluster) if options.rwo_scheduling else None
        )
        if node:
            pod["affinity"] = require_node(node, None)
    elif logs.directory.startswith("gs://"):
        container["volumeMounts"] = [
            {"name": "gcp-creds", "mountPath": "/secret/gcp", "readOnly": True}
        ]
        secret = {"secretName": GCP_SECRET, "optional": True}
        pod["volumes"] = [{"name": "gcp-creds", "secret": secret}]
    if named := annotations_of(board).get(SECRET):
        container["envFrom"] = [{"secretRef": {"name": named}}]
    elif logs.directory.startswith("s3://"):
        container["envFrom"] = [{"secretRef": {"name": S3_SECRET, "optional": True}}]
    return restrict(pod)


def _status(board: Object, cluster: ClusterState, reason: Reason) -> Json:
    """Has one condition, the current one; upstream's only appends to its list."""
    found = cluster.owned_child(board, "Deployment", name_of(board))
    ready = status_reasons.ready_condition(board, reason, format_time(cluster.now))
    ready["deploymentState"] = (
        "Available"
        if reason is status_reasons.RUNNING
        else "ReplicaFailure"
        if reason.name in ("QuotaExceeded", "NotAllowed", "PodRefused", "ServiceAccountMissing")
        else "Progressing"
    )
    ready["lastProbeTime"] = ready["lastTransitionTime"]
    return {
        "conditions": [ready],
        "readyReplicas": int((found and found.status.get("readyReplicas")) or 0),
    }
