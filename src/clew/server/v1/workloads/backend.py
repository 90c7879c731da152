"""The back end of notebooks, TensorBoards and volumes, and what it offers to forms."""

from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from clew.documents.workloads.workload import (
    BackendInfo,
    Culling,
    Features,
    Snapshots,
    StorageClassList,
)
from clew.server.proxy.app_origin import AppOrigin
from clew.server.v1.dependencies import BackendDep, Namespace, ServiceDep
from clew.server.v1.document_router import DocumentRouter
from clew.workloads.resource_lists import list_snapshots as list_items

router = DocumentRouter(tags=["workloads"])

_MOST_MINUTES = 366 * 24 * 60

_NO_FEATURES = Features(
    notebooks=False,
    tensorboards=False,
    volumes=False,
    snapshots=False,
    gpus=(),
    culling=Culling(enabled=False, idle_minutes=None),
)


@router.get("/backend")
def get_backend(request: Request, service: ServiceDep) -> BackendInfo:
    """The back end of notebooks, TensorBoards and volumes; `kind` is `none` if there is none."""
    origin: AppOrigin | None = request.app.state.apps
    template = origin.template if origin and origin.shared else None
    port = origin.port if origin and origin.template is None else None
    backend = service.backend
    if backend is None:
        return BackendInfo(
            kind="none",
            namespaces=(),
            namespace=None,
            user="",
            features=_NO_FEATURES,
            programs=(),
            spawner_error=None,
            apps_origin=template,
            apps_port=port,
        )
    return BackendInfo(
        kind=backend.kind,
        namespaces=tuple(backend.namespaces()),
        namespace=backend.namespace,
        user=backend.user,
        features=backend.features(),
        programs=() if backend.programs is None else tuple(backend.programs.list()),
        spawner_error=service.spawner.error,
        apps_origin=template,
        apps_port=port,
    )


class IdleLimit(BaseModel):
    """`idle_minutes`: null stops nothing."""

    model_config = ConfigDict(extra="forbid")

    idle_minutes: Annotated[float, Field(gt=0, le=_MOST_MINUTES, examples=[120])] | None


@router.put("/idle-limit")
def set_idle_limit(backend: BackendDep, limit: IdleLimit) -> Culling:
    """After how long without use this machine stops notebooks, TensorBoards and viewers. 403 on a
    cluster: its operator decides."""
    backend.set_idle_minutes(limit.idle_minutes)
    return backend.features().culling


@router.get("/storage-classes")
def list_storage_classes(backend: BackendDep) -> StorageClassList:
    """The kinds of storage that new volumes can have."""
    return StorageClassList(storage_classes=tuple(backend.storage_classes()))


@router.get("/namespaces/{namespace}/snapshots")
def list_snapshots(backend: BackendDep, namespace: Namespace) -> Snapshots:
    """The snapshots that new volumes can be copied from; none if the cluster has none."""
    return Snapshots(snapshots=list_items(backend, namespace))
