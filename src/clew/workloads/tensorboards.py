"""A TensorBoard: from the form, its state in plain words, and its entry in a list."""

from collections.abc import Iterable, Mapping
from typing import Any

from clew.documents.workloads.kubeflow import ResourceStatus, TensorboardItem
from clew.errors import UsageError
from clew.kube.controller.model import is_stopped
from clew.kube.objects import Json, Object, condition_of, dig, is_deleting, name_of, namespace_of
from clew.kube.resources.tensorboards import parse_logspath
from clew.workloads import annotations
from clew.workloads.forms.notebook_form import Form, check_resource_name
from clew.workloads.forms.spawner_config import FormDefaults
from clew.workloads.notebooks import matching_configurations

_MAX_PATH = 4096


def build_tensorboard(
    body: Mapping[str, Any], *, namespace: str, request: str | None = None
) -> Json:
    name = check_resource_name("Tensorboard", body.get("name"))
    path = body.get("logspath")
    if not isinstance(path, str) or not path or len(path) > _MAX_PATH or "\0" in path:
        raise UsageError("logspath is missing", hint="pvc://VOLUME/PATH or s3://BUCKET/PATH")
    if fault := parse_logspath(path).fault:
        raise UsageError(fault, hint="pvc://VOLUME/PATH or s3://BUCKET/PATH")
    labels = Form({"configurations": body.get("configurations", [])}, FormDefaults({}))
    return {
        "apiVersion": "tensorboard.kubeflow.org/v1alpha1",
        "kind": "Tensorboard",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels.configurations(),
            "annotations": {annotations.REQUEST: request} if request else {},
        },
        "spec": {"logspath": path},
    }


def tensorboard_status(board: Object) -> ResourceStatus:
    ready = condition_of(board, "Ready")
    reason, message = str(ready.get("reason") or ""), str(ready.get("message") or "")
    running = int(dig(board, "status", "readyReplicas") or 0) > 0
    if is_deleting(board):
        phase, message = "terminating", "It is being deleted."
    elif is_stopped(board):
        phase, message = ("waiting", "It is being stopped.") if running else ("stopped", "Stopped")
    elif running:
        phase, message = "ready", "Running"
    elif reason in ("", "Starting", "NotReady"):
        # Kubeflow calls every board that is not ready unavailable.
        phase, message = "unavailable", message or "It is starting."
    else:
        phase = "warning"
    return ResourceStatus(phase=phase, message=message or reason, state=reason)


def tensorboard_item(board: Object, pod_defaults: Iterable[Object] = ()) -> TensorboardItem:
    return TensorboardItem(
        name=name_of(board),
        namespace=namespace_of(board),
        logspath=str(dig(board, "spec", "logspath") or ""),
        age=str(dig(board, "metadata", "creationTimestamp") or ""),
        status=tensorboard_status(board),
        configurations=matching_configurations(board, pod_defaults),
    )
