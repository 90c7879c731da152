"""Lists of notebooks, TensorBoards and volumes, and what forms offer."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from clew.documents.workloads.kubeflow import ClaimSize, NotebookItem, TensorboardItem, VolumeItem
from clew.documents.workloads.workload import Snapshot
from clew.kube.objects import dig, name_of
from clew.workloads.backend import Backend
from clew.workloads.events import group_events
from clew.workloads.forms.spawner_config import FormDefaults
from clew.workloads.notebooks import notebook_item
from clew.workloads.tensorboards import tensorboard_item
from clew.workloads.volumes import claim_size, volume_item

_CLAIM = "PersistentVolumeClaim"


def list_notebooks(
    backend: Backend, namespace: str, defaults: FormDefaults
) -> tuple[NotebookItem, ...]:
    events = group_events(backend.list("Event", namespace), "Notebook")
    pod_defaults = backend.list("PodDefault", namespace)
    now, vendors = datetime.now(UTC), defaults.vendor_names()
    return tuple(
        notebook_item(
            one, events.get(name_of(one), ()), now, vendors=vendors, pod_defaults=pod_defaults
        )
        for one in backend.list("Notebook", namespace)
    )


def list_tensorboards(backend: Backend, namespace: str) -> tuple[TensorboardItem, ...]:
    pod_defaults = backend.list("PodDefault", namespace)
    return tuple(
        tensorboard_item(one, pod_defaults) for one in backend.list("Tensorboard", namespace)
    )


def list_volumes(backend: Backend, namespace: str) -> tuple[VolumeItem, ...]:
    events = group_events(backend.list("Event", namespace), _CLAIM)
    notebooks = backend.list("Notebook", namespace)
    viewers = backend.list("PVCViewer", namespace)
    return tuple(
        volume_item(one, events.get(name_of(one), ()), notebooks=notebooks, viewers=viewers)
        for one in backend.list(_CLAIM, namespace)
    )


def list_claim_sizes(backend: Backend, namespace: str) -> tuple[ClaimSize, ...]:
    return tuple(claim_size(one) for one in backend.list(_CLAIM, namespace))


def list_configurations(backend: Backend, namespace: str) -> tuple[dict[str, Any], ...]:
    """The configurations (PodDefaults) that a form can choose, each with its `label` and `desc`.
    One that selects by expressions alone has no label, so no form can choose it."""
    return tuple(
        {**one, "label": next(iter(labels)), "desc": dig(one, "spec", "desc") or name_of(one)}
        for one in backend.list("PodDefault", namespace)
        if (labels := dig(one, "spec", "selector", "matchLabels"))
    )


def list_snapshots(backend: Backend, namespace: str) -> tuple[Snapshot, ...]:
    found = backend.list("VolumeSnapshot", namespace)
    return tuple(
        Snapshot(
            name=name_of(one),
            volume=dig(one, "spec", "source", "persistentVolumeClaimName"),
            size=dig(one, "status", "restoreSize"),
            ready=dig(one, "status", "readyToUse") is True,
            created=dig(one, "metadata", "creationTimestamp"),
        )
        for one in found
    )


def list_gpu_vendors(backend: Backend, defaults: FormDefaults) -> Sequence[str]:
    """The vendors that the administrator offers and some node has."""
    present = backend.features().gpus
    return [vendor for vendor in defaults.gpu_vendors() if vendor in present]
