"""The state of a notebook in plain words, and its entry in a list.

The phases are Kubeflow's. The operator, and the local supervisor, write the cause into the `Ready`
condition, so that condition comes before the state of the container and before events. Resources
that others wrote may lack any field.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from clew.documents.workloads.kubeflow import GpuCount, NotebookItem, ResourceStatus
from clew.kube.controller.model import is_stopped
from clew.kube.objects import (
    Object,
    annotations_of,
    condition_of,
    dig,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    parse_time,
)
from clew.workloads import annotations
from clew.workloads.events import latest_warning

_NEW = timedelta(seconds=10)
_WAITING_REASONS = frozenset(
    (
        "Starting", "NotReady", "Stopping", "PodInitializing", "ContainerCreating",
        "ContainersNotReady",
    )
)  # fmt: skip
"""Nothing is wrong: it takes a moment."""


def notebook_status(notebook: Object, events: Iterable[Object], now: datetime) -> ResourceStatus:
    """`events`: those about this notebook."""
    running = int(dig(notebook, "status", "readyReplicas") or 0)
    if is_deleting(notebook):
        return _status("terminating", "It is being deleted.")
    if is_stopped(notebook):
        if running:
            return _status("waiting", "It is being stopped.", "Stopping")
        return _status("stopped", "It is stopped; its volumes are kept.", "Stopped")
    if running:
        return _status("ready", "Running", "Running")
    ready = condition_of(notebook, "Ready")
    if ready.get("status") == "False" and ready.get("reason"):
        return _problem(str(ready["reason"]), str(ready.get("message") or ""))
    return _upstream_status(notebook, events, now)


def _upstream_status(notebook: Object, events: Iterable[Object], now: datetime) -> ResourceStatus:
    """The state of a notebook whose conditions another operator wrote."""
    waiting = dig(notebook, "status", "containerState", "waiting")
    conditions = dig(notebook, "status", "conditions") or []
    if waiting:
        message = str(waiting.get("message") or "It has not said why.")
        return _problem(str(waiting.get("reason") or "Undefined"), message)
    for condition in conditions:
        if condition.get("reason") and condition.get("status") != "True":
            return _problem(str(condition["reason"]), str(condition.get("message") or ""))
    created = parse_time(dig(notebook, "metadata", "creationTimestamp"))
    warning = latest_warning(events, since=created)
    if warning:
        return _status("warning", str(warning.get("message") or ""), str(warning.get("reason", "")))
    if created is None or now - created <= _NEW:
        return _status("waiting", "It is about to start.", "Starting")
    return _status("warning", "Nothing is known about it yet.")


def _problem(reason: str, message: str) -> ResourceStatus:
    if reason in _WAITING_REASONS:
        return _status("waiting", message or "It is starting.", reason)
    return _status("warning", message or reason, reason)


def _status(phase: str, message: str, state: str = "") -> ResourceStatus:
    return ResourceStatus(phase=phase, message=message, state=state)


def notebook_item(
    notebook: Object,
    events: Iterable[Object],
    now: datetime,
    *,
    vendors: Mapping[str, str],
    pod_defaults: Sequence[Object] = (),
) -> NotebookItem:
    """`vendors`: the names of GPU vendors by their resource names."""
    notes = annotations_of(notebook)
    container = container_of(notebook)
    image = str(container.get("image") or "")
    return NotebookItem(
        name=name_of(notebook),
        namespace=namespace_of(notebook),
        server_type=notes.get(annotations.SERVER_TYPE, "jupyter"),
        age=str(dig(notebook, "metadata", "creationTimestamp") or ""),
        last_activity=notes.get(annotations.LAST_ACTIVITY, ""),
        image=image,
        short_image=image.rpartition("/")[2],
        cpu=_text(dig(container, "resources", "requests", "cpu")),
        memory=_text(dig(container, "resources", "requests", "memory")),
        gpus=count_gpus(container, vendors),
        volumes=tuple(
            str(mount.get("name") or "")
            for mount in container.get("volumeMounts") or ()
            if mount.get("mountPath") != "/dev/shm"  # noqa: S108
        ),
        status=notebook_status(notebook, events, now),
        metadata=dict(notebook["metadata"]),
        configurations=matching_configurations(notebook, pod_defaults),
        idle_minutes=notes.get(annotations.IDLE_MINUTES),
    )


def container_of(notebook: Object) -> Object:
    """The container named like the notebook, else the first; empty if there is none."""
    containers = dig(notebook, "spec", "template", "spec", "containers") or [{}]
    name = name_of(notebook)
    return next((one for one in containers if one.get("name") == name), containers[0])


def count_gpus(container: Object, vendors: Mapping[str, str]) -> GpuCount:
    limits = dig(container, "resources", "limits") or {}
    found = [
        (name, int(str(limits[key])))
        for key, name in vendors.items()
        if str(limits.get(key, "")).isdecimal()
    ]
    message = ", ".join(f"{count} {name}" for name, count in found)
    return GpuCount(count=sum(count for _, count in found), message=message)


def matching_configurations(resource: Object, pod_defaults: Iterable[Object]) -> tuple[str, ...]:
    """The names of the PodDefaults whose labels the resource has."""
    labels = labels_of(resource)
    return tuple(
        name_of(one)
        for one in pod_defaults
        if (wanted := dig(one, "spec", "selector", "matchLabels"))
        and all(labels.get(key) == value for key, value in wanted.items())
    )


def _text(found: Any) -> str | None:
    return None if found is None else str(found)
