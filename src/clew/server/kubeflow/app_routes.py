"""The routes that all three apps have."""

from clew.documents.kubeflow import (
    DefaultStorageClass,
    Info,
    Namespaces,
    PodDefaults,
    StorageClasses,
)
from clew.server.v1.dependencies import BackendDep, Namespace
from clew.server.v1.document_router import DocumentRouter
from clew.workloads.listings import list_configurations


def make_router(app: str) -> DocumentRouter:
    """A router for the app `app`, with the routes that all have."""
    router = DocumentRouter(prefix=f"/{app}", tags=[app])

    @router.get("/info")
    def get_info(backend: BackendDep) -> Info:
        """Who the user is."""
        return Info(user=backend.user, info={})

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
