"""List the workloads that run, start, or cannot run, for the first page."""

from typing import Literal

from clew.documents.project.activities import ActiveWorkload
from clew.documents.workloads.kubeflow import NotebookItem, TensorboardItem
from clew.workloads.backend import Backend
from clew.workloads.forms.spawner_config import FormDefaults
from clew.workloads.resource_lists import list_notebooks, list_tensorboards

_HIDDEN = ("stopped", "terminating")
_URGENT = ("error", "warning", "unavailable")


def list_active_workloads(
    backend: Backend, namespace: str, defaults: FormDefaults
) -> tuple[ActiveWorkload, ...]:
    """The notebooks and TensorBoards that are not stopped, those with problems first."""
    found = [
        *(_describe("notebook", one) for one in list_notebooks(backend, namespace, defaults)),
        *(_describe("tensorboard", one) for one in list_tensorboards(backend, namespace)),
    ]
    active = [one for one in found if one.phase not in _HIDDEN]
    return tuple(sorted(active, key=lambda one: (one.phase not in _URGENT, one.kind, one.name)))


def _describe(
    kind: Literal["notebook", "tensorboard"], item: NotebookItem | TensorboardItem
) -> ActiveWorkload:
    return ActiveWorkload(
        kind=kind,
        namespace=item.namespace,
        name=item.name,
        phase=item.status.phase,
        message=item.status.message,
        created=item.age,
    )
