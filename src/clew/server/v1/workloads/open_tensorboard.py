"""Open a TensorBoard of what a run wrote, of a directory of a volume, or of a bucket."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from clew.api.local.project import LocalProject
from clew.api.local.tensorboard_logs import copy_logs, find_log_place
from clew.documents.workloads.workload import OpenedTensorboard
from clew.errors import UsageError
from clew.server.v1.dependencies import BackendDep, Namespace, ProjectDep, Text
from clew.server.v1.document_router import DocumentRouter
from clew.workloads.changes.open_tensorboard import open_tensorboard as open_logs
from clew.workloads.local.resource_files import NAMESPACE
from clew.workloads.local.volume_directories import PROJECT

router = DocumentRouter(tags=["workloads"])

_DIRECTORY = "tensorboard"
"""In `.clew/workloads`: a directory for each run."""


class TensorboardSource(BaseModel):
    """Either `target` or `logspath`."""

    model_config = ConfigDict(extra="forbid")

    target: Text | None = Field(
        default=None, description="What wrote the logs: an execution, a run, or a task `r1/train`."
    )
    logspath: Annotated[str, StringConstraints(min_length=1, max_length=4096)] | None = Field(
        default=None, description="`pvc://VOLUME/PATH` or the address of a bucket."
    )


@router.post("/namespaces/{namespace}/open-tensorboard")
def open_tensorboard(
    backend: BackendDep, project: ProjectDep, namespace: Namespace, source: TensorboardSource
) -> OpenedTensorboard:
    """The TensorBoard of these logs. It is created unless there is one, and started if it is
    stopped."""
    if (source.target is None) == (source.logspath is None):
        raise UsageError("the body must have either target or logspath")
    if source.logspath is not None:
        return open_logs(backend, namespace, source.logspath)
    assert source.target is not None
    if backend.kind != "local":
        place = find_log_place(project.graph, source.target, namespace)
        return open_logs(backend, namespace, place, label=source.target)
    return open_logs(backend, NAMESPACE, _copy(project, source.target), label=source.target)


def _copy(project: LocalProject, target: str) -> str:
    """Copy the logs, and return where they are."""
    root = project.directory.root.resolve()
    logs = copy_logs(project, target, project.directory.path / "workloads" / _DIRECTORY)
    return f"pvc://{PROJECT}/{logs.resolve().relative_to(root)}"
