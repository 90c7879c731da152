"""A volume: from the form, its state in plain words, who uses it, its viewer, its list entry."""

from collections.abc import Iterable, Mapping, Sequence
from email.utils import format_datetime
from typing import Any

from clew.documents.workloads.kubeflow import ClaimSize, ResourceStatus, ViewerState, VolumeItem
from clew.errors import UsageError
from clew.kube.controller.model import is_stopped
from clew.kube.objects import (
    Json,
    Object,
    condition_of,
    controller_of,
    dig,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    parse_time,
)
from clew.workloads import annotations
from clew.workloads.events import newest_first
from clew.workloads.forms.notebook_volumes import ACCESS_MODES, check_claim_name, check_claim_spec

_PREPARING = "The storage is being prepared."
_VIEWER_LABEL = "app.kubernetes.io/part-of"
_VIEWER_APP = "pvc-viewer"


def build_volume(body: Mapping[str, Any], *, namespace: str, request: str | None = None) -> Json:
    """`class`: `{none}` is no storage class, `{empty}` or nothing the default one. Additional to
    Kubeflow's fields, `snapshot`: the name of a snapshot to copy."""
    mode, size = body.get("mode"), body.get("size")
    if mode not in ACCESS_MODES:
        raise UsageError(f"mode must be one of {', '.join(ACCESS_MODES)}")
    size = f"{size}Gi" if isinstance(size, int | float) and not isinstance(size, bool) else size
    spec: Json = {"accessModes": [mode], "resources": {"requests": {"storage": size}}}
    if body.get("class") not in (None, ""):
        spec["storageClassName"] = body["class"]
    if snapshot := body.get("snapshot"):
        if not isinstance(snapshot, str):
            raise UsageError("snapshot must be the name of a snapshot")
        spec["dataSource"] = {
            "apiGroup": "snapshot.storage.k8s.io",
            "kind": "VolumeSnapshot",
            "name": snapshot,
        }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": check_claim_name(body.get("name")),
            "namespace": namespace,
            "annotations": {annotations.REQUEST: request} if request else {},
        },
        "spec": check_claim_spec(spec),
    }


def build_viewer(claim: str, *, namespace: str, request: str | None = None) -> Json:
    """A viewer has the name of its volume, as in Kubeflow."""
    return {
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "PVCViewer",
        "metadata": {
            "name": claim,
            "namespace": namespace,
            "annotations": {annotations.REQUEST: request} if request else {},
        },
        "spec": {"pvc": claim, "rwoScheduling": True, "networking": {"basePrefix": "/pvcviewers"}},
    }


def volume_status(claim: Object, events: Iterable[Json]) -> ResourceStatus:
    """`events`: those about this claim."""
    if is_deleting(claim):
        return _status("terminating", "It is being deleted, once nothing uses it any more.")
    ready = condition_of(claim, "Ready")
    if ready.get("status") == "False":
        reason = str(ready.get("reason") or "")
        return _status("warning", str(ready.get("message") or reason), reason)
    if dig(claim, "status", "phase") == "Bound":
        return _status("ready", "Bound", "Bound")
    latest = next(iter(newest_first(events)), None)
    return _status("waiting", _PREPARING) if latest is None else _pending_status(latest)


def _pending_status(latest: Object) -> ResourceStatus:
    """From the latest event."""
    reason, message = str(latest.get("reason") or ""), str(latest.get("message") or "")
    if reason == "WaitForFirstConsumer":
        text = "It is created when it is first used: mount it in a notebook, or browse it."
        return _status("unavailable", text, reason)
    if reason in ("Provisioning", "ExternalProvisioning"):
        return _status("waiting", message or _PREPARING, reason)
    phase = "warning" if reason == "FailedBinding" or latest.get("type") == "Warning" else "waiting"
    return _status(phase, message, reason)


def _status(phase: str, message: str, state: str = "") -> ResourceStatus:
    return ResourceStatus(phase=phase, message=message, state=state)


def viewer_status(viewer: Object | None) -> ResourceStatus:
    if viewer is None:
        return _status("uninitialized", "It is not open.")
    ready = condition_of(viewer, "Ready")
    reason, message = str(ready.get("reason") or ""), str(ready.get("message") or "")
    if is_deleting(viewer):
        return _status("terminating", "It is being closed.")
    if is_stopped(viewer):
        return _status("stopped", "It is stopped.", "Stopped")
    if dig(viewer, "status", "ready") is True:
        return _status("ready", "Running", "Running")
    if reason in ("", "Starting", "NotReady", "Running"):
        return _status("waiting", message or "It is starting.", reason)
    return _status("warning", message or reason, reason)


def volume_item(
    claim: Object,
    events: Iterable[Json],
    *,
    notebooks: Iterable[Object],
    viewers: Iterable[Object],
) -> VolumeItem:
    """`events`: those about this claim; `notebooks`, `viewers`: all of its namespace."""
    name = name_of(claim)
    viewer = next((one for one in viewers if dig(one, "spec", "pvc") == name), None)
    created = parse_time(dig(claim, "metadata", "creationTimestamp"))
    return VolumeItem(
        name=name,
        namespace=namespace_of(claim),
        status=volume_status(claim, events),
        age=format_datetime(created, usegmt=True) if created else "",
        capacity=dig(claim, "status", "capacity", "storage") or requested_size(claim),
        modes=tuple(map(str, dig(claim, "spec", "accessModes") or ())),
        storage_class=dig(claim, "spec", "storageClassName"),
        notebooks=tuple(name_of(one) for one in notebooks if name in claims_of(one)),
        viewer=ViewerState(
            status=viewer_status(viewer).phase,
            url=str(dig(viewer, "status", "url") or "") or None,
        ),
    )


def claim_size(claim: Object) -> ClaimSize:
    modes = dig(claim, "spec", "accessModes") or (None,)
    return ClaimSize(name=name_of(claim), size=requested_size(claim), mode=modes[0])


def requested_size(claim: Object) -> str | None:
    found = dig(claim, "spec", "resources", "requests", "storage")
    return None if found is None else str(found)


def claims_of(notebook: Object) -> set[str]:
    """The claims that a Notebook mounts."""
    volumes = dig(notebook, "spec", "template", "spec", "volumes") or ()
    found = (dig(volume, "persistentVolumeClaim", "claimName") for volume in volumes)
    return {str(claim) for claim in found if claim}


def is_viewer_pod(pod: Object, viewers: Sequence[Object]) -> bool:
    """Whether a Pod belongs to a viewer of the volume: only those go when the volume is deleted.
    Kubeflow takes any Pod with a common label for one."""
    labels = labels_of(pod)
    names = {name_of(viewer) for viewer in viewers}
    made = labels.get(_VIEWER_LABEL) == _VIEWER_APP and bool(controller_of(pod))
    return made and labels.get("app.kubernetes.io/name") in names
