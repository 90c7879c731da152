"""Pods that stand for the processes of this machine, so that both back ends answer the same way."""

from typing import TYPE_CHECKING

from clew.kube.controller.model import is_stopped
from clew.kube.objects import Json, Key, Object, dig, name_of, uid_of
from clew.workloads.local.processes.launch_plan import claims_used_by
from clew.workloads.local.processes.process_status import RUNNING, container_state
from clew.workloads.local.resource_files import NAMESPACE

if TYPE_CHECKING:
    from clew.workloads.local.processes.running_process import Runtime

_SUFFIXES = {"Notebook": "-0", "Tensorboard": "-tensorboard", "PVCViewer": "-viewer"}


def pod_name(kind: str, name: str) -> str:
    return f"{name}{_SUFFIXES[kind]}"


def owner_of_pod(pod: str) -> Key | None:
    """The resource whose process this Pod stands for."""
    for kind, suffix in reversed(_SUFFIXES.items()):
        if pod.endswith(suffix) and len(pod) > len(suffix):
            return Key(kind, NAMESPACE, pod.removesuffix(suffix))
    return None


def make_pod(resource: Object, runtime: "Runtime | None") -> Json | None:
    """None: the resource is stopped, and no process runs."""
    process = runtime and runtime.process
    if runtime is None or (is_stopped(resource) and process is None):
        return None
    kind, name = str(resource["kind"]), name_of(resource)
    ready = runtime.reason == RUNNING
    since = str(dig((dig(resource, "status", "conditions") or [{}])[0], "lastTransitionTime") or "")
    container = name if kind == "Notebook" else kind.lower()
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(kind, name),
            "namespace": NAMESPACE,
            "uid": f"{uid_of(resource)}-process",
            "creationTimestamp": since,
            "labels": _labels(kind, name),
            "ownerReferences": [
                {"kind": kind, "name": name, "uid": uid_of(resource), "controller": True}
            ],
        },
        "spec": {
            "containers": [{"name": container}],
            "volumes": [
                {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
                for claim in sorted(claims_used_by(resource))
            ],
        },
        "status": {
            "phase": "Running" if process else "Pending",
            "conditions": dig(resource, "status", "conditions") or [],
            "containerStatuses": [
                {
                    "name": container,
                    "ready": ready,
                    "restartCount": runtime.restarts,
                    "state": container_state(runtime.reason, since),
                    **({"pid": process.pid} if process else {}),
                }
            ],
        },
    }


def _labels(kind: str, name: str) -> dict[str, str]:
    """The labels that the operator gives to Pods."""
    if kind == "Notebook":
        return {"notebook-name": name, "statefulset": name}
    if kind == "Tensorboard":
        return {"app": name}
    return {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/instance": f"pvcviewer-{name}",
        "app.kubernetes.io/part-of": "pvc-viewer",
    }
