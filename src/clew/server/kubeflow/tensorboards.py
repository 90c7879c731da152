"""The routes of Kubeflow's tensorboards app."""

from clew.documents.workloads.forms import TensorboardForm
from clew.documents.workloads.kubeflow import ClaimNames, Message, Tensorboards
from clew.kube.objects import Key, name_of
from clew.server.kubeflow.app_routes import add_configurations, make_router
from clew.server.kubeflow.request_body import Body, RequestKey, describe_body
from clew.server.v1.dependencies import BackendDep, Namespace
from clew.workloads.changes.creation import create_tensorboard as create
from clew.workloads.resource_lists import list_tensorboards as list_items

router = make_router("tensorboards")
add_configurations(router)

_TENSORBOARDS = "/api/namespaces/{namespace}/tensorboards"


@router.get("/api/namespaces/{namespace}/pvcs")
def list_pvcs(backend: BackendDep, namespace: Namespace) -> ClaimNames:
    """The volumes that logs can be in."""
    names = tuple(map(name_of, backend.list("PersistentVolumeClaim", namespace)))
    return ClaimNames(user=backend.user, pvcs=names)


@router.get(_TENSORBOARDS)
def list_tensorboards(backend: BackendDep, namespace: Namespace) -> Tensorboards:
    return Tensorboards(user=backend.user, tensorboards=list_items(backend, namespace))


@router.post(_TENSORBOARDS, openapi_extra=describe_body(TensorboardForm))
def create_tensorboard(
    backend: BackendDep, namespace: Namespace, body: Body, request: RequestKey = None
) -> Message:
    create(backend, namespace, body, request)
    return Message(user=backend.user, message="Tensorboard created successfully.")


@router.delete(f"{_TENSORBOARDS}/{{name}}")
def delete_tensorboard(backend: BackendDep, namespace: Namespace, name: str) -> Message:
    """Delete a TensorBoard; its logs are kept."""
    backend.delete(Key("Tensorboard", namespace, name))
    return Message(user=backend.user, message=f"Tensorboard {name} successfully deleted.")
