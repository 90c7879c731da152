"""The routes that all three apps have."""

from typing import Literal

from clew.documents.workloads.kubeflow import (
    DefaultStorageClass,
    Info,
    Namespaces,
    PodDefaults,
    StorageClasses,
)
from clew.server.metrics import respond_with_metrics
from clew.server.v1.dependencies import BackendDep, Namespace, ServiceDep
from clew.server.v1.document_router import DocumentRouter
from clew.workloads.resource_lists import list_configurations


def make_router(app: str) -> DocumentRouter:
    """A router for the app `app`, with the routes that all have."""
    router = DocumentRouter(prefix=f"/{app}", tags=[app])

    @router.get("/info")
    def get_info(backend: BackendDep) -> Info:
        """The name of the user."""
        return Info(user=backend.user, info={})

    @router.get("/healthz/liveness", include_in_schema=False)
    def get_liveness() -> Literal["alive"]:
        """Whether the server runs. Anybody may ask."""
        return "alive"

    @router.get("/healthz/readiness", include_in_schema=False)
    def get_readiness(service: ServiceDep) -> Literal["ready"]:
        """Whether the database answers; else 503. Anybody may ask."""
        with service.graph() as graph:
            graph.connection.row("SELECT 1")
        return "ready"

    router.add_api_route("/metrics", respond_with_metrics, include_in_schema=False)

    @router.get("/api/namespaces")
    def list_namespaces(backend: BackendDep) -> Namespaces:
        return Namespaces(user=backend.user, namespaces=tuple(backend.namespaces()))

    @router.get("/api/storageclasses")
    def list_storage_classes(backend: BackendDep) -> StorageClasses:
        names = tuple(one.name for one in backend.storage_classes())
        return StorageClasses(user=backend.user, storage_classes=names)

    @router.get("/api/storageclasses/default")
    def get_default_storage_class(backend: BackendDep) -> DefaultStorageClass:
        """Its name; empty if there is none."""
        found = next((one.name for one in backend.storage_classes() if one.default), "")
        return DefaultStorageClass(user=backend.user, default_storage_class=found)

    return router


def add_configurations(router: DocumentRouter) -> None:
    @router.get("/api/namespaces/{namespace}/poddefaults")
    def list_poddefaults(backend: BackendDep, namespace: Namespace) -> PodDefaults:
        """The configurations that a form can choose."""
        found = list_configurations(backend, namespace)
        return PodDefaults(user=backend.user, poddefaults=found)
