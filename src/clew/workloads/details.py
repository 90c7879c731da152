"""Everything about one resource: its state, conditions, events, containers and YAML."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import yaml

from clew.documents.workloads.kubeflow import ResourceStatus
from clew.documents.workloads.workload import Condition, Container, Workload
from clew.errors import NotFound
from clew.kube.objects import Json, Key, Object, annotations_of, dig
from clew.workloads import annotations
from clew.workloads.backend import Backend
from clew.workloads.events import describe_events, events_about
from clew.workloads.notebooks import matching_configurations, notebook_status
from clew.workloads.tensorboards import tensorboard_status
from clew.workloads.volumes import viewer_status, volume_status

KINDS = {
    "notebooks": "Notebook",
    "tensorboards": "Tensorboard",
    "volumes": "PersistentVolumeClaim",
    "viewers": "PVCViewer",
}
"""The kind of each collection of the API."""
_APPLIED = "poddefault.admission.kubeflow.org/poddefault-"
"""On a Pod, followed by the name of a PodDefault: it was applied."""
_METADATA = ("name", "namespace", "labels")


def key_for(collection: str, namespace: str, name: str) -> Key:
    if collection not in KINDS:
        raise NotFound(f"there are no {collection}", hint=f"one of {', '.join(KINDS)}")
    return Key(KINDS[collection], namespace, name)


def describe(backend: Backend, collection: str, namespace: str, name: str) -> Workload:
    key = key_for(collection, namespace, name)
    resource = backend.get(key)
    events = events_about(backend.list("Event", namespace), key.kind, name)
    pods = backend.pods_of(key) if collection != "volumes" else ()
    status = status_of(resource, events)
    defaults = backend.list("PodDefault", namespace) if collection == "notebooks" else ()
    return Workload(
        kind=collection,
        name=name,
        namespace=namespace,
        phase=status.phase,
        message=status.message,
        conditions=describe_conditions(resource),
        events=describe_events(events),
        containers=describe_containers(pods),
        applied=_applied(pods) or matching_configurations(resource, defaults),
        yaml=to_yaml(resource),
        url=path_of(resource),
    )


def status_of(resource: Object, events: Iterable[Json]) -> ResourceStatus:
    """The state of a resource of any kind; `events`: those about it."""
    kind = resource.get("kind")
    if kind == "Notebook":
        return notebook_status(resource, events, datetime.now(UTC))
    if kind == "Tensorboard":
        return tensorboard_status(resource)
    if kind == "PVCViewer":
        return viewer_status(resource)
    return volume_status(resource, events)


def path_of(resource: Object) -> str | None:
    """The path under which a resource is served."""
    kind, namespace, name = (
        resource.get("kind"),
        dig(resource, "metadata", "namespace"),
        dig(resource, "metadata", "name"),
    )
    if kind == "PVCViewer":
        return dig(resource, "status", "url") or f"/pvcviewers/{namespace}/{name}/"
    prefix = {"Notebook": "notebook", "Tensorboard": "tensorboard"}.get(str(kind))
    return None if prefix is None else f"/{prefix}/{namespace}/{name}/"


def describe_conditions(resource: Object) -> tuple[Condition, ...]:
    return tuple(
        Condition(
            type=str(one.get("type") or one.get("deploymentState") or ""),
            status=str(one.get("status") or ""),
            reason=str(one.get("reason") or ""),
            message=str(one.get("message") or ""),
            at=one.get("lastTransitionTime") or one.get("lastProbeTime"),
        )
        for one in dig(resource, "status", "conditions") or ()
    )


def describe_containers(pods: Sequence[Object]) -> tuple[Container, ...]:
    """The containers of the newest Pod."""
    if not pods:
        return ()
    found = [
        *(dig(pods[-1], "status", "initContainerStatuses") or ()),
        *(dig(pods[-1], "status", "containerStatuses") or ()),
    ]
    return tuple(
        Container(
            name=str(one.get("name")),
            state=next(iter(one.get("state") or {}), "waiting"),
            ready=bool(one.get("ready")),
            restarts=int(one.get("restartCount") or 0),
        )
        for one in found
    )


def _applied(pods: Sequence[Object]) -> tuple[str, ...]:
    notes = annotations_of(pods[-1]) if pods else {}
    return tuple(sorted(name.removeprefix(_APPLIED) for name in notes if name.startswith(_APPLIED)))


def to_yaml(resource: Object) -> str:
    """The parts of a resource that a user may edit. What the system notes about its use is left
    out: it changes every minute."""
    metadata = {name: resource["metadata"].get(name) for name in _METADATA}
    metadata["annotations"] = {
        name: value
        for name, value in annotations_of(resource).items()
        if name not in annotations.WRITTEN_BY_SYSTEM
    }
    shown = {
        "apiVersion": resource.get("apiVersion"),
        "kind": resource.get("kind"),
        "metadata": {name: value for name, value in metadata.items() if value},
        "spec": resource.get("spec") or {},
    }
    return yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=100)
