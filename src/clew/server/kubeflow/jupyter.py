"""The routes of Kubeflow's jupyter app."""

from typing import Any

from clew.documents.workloads.forms import NotebookForm, StopForm
from clew.documents.workloads.kubeflow import (
    ClaimSizes,
    Config,
    Events,
    GpuVendors,
    Logs,
    Message,
    NotebookResource,
    Notebooks,
    PodResource,
    Response,
)
from clew.errors import NotFound, UsageError
from clew.kube.objects import Key, name_of
from clew.server.kubeflow.app_routes import add_configurations, make_router
from clew.server.kubeflow.request_body import Body, RequestKey, describe_body
from clew.server.v1.dependencies import BackendDep, FormDefaultsDep, Namespace
from clew.workloads.backend import Backend
from clew.workloads.changes.creation import create_notebook as create
from clew.workloads.changes.edits import set_stopped
from clew.workloads.details import status_of
from clew.workloads.events import events_about
from clew.workloads.resource_lists import list_claim_sizes, list_gpu_vendors
from clew.workloads.resource_lists import list_notebooks as list_items

router = make_router("jupyter")
add_configurations(router)

_NOTEBOOKS = "/api/namespaces/{namespace}/notebooks"
_NOTEBOOK = f"{_NOTEBOOKS}/{{name}}"
_MAX_LINES = 10_000
"""The last lines of a log; `/api/v1` has all of it."""


@router.get("/api/config")
def get_config(backend: BackendDep, defaults: FormDefaultsDep) -> Config:
    """The defaults of the notebook form."""
    return Config(user=backend.user, config=defaults.fields)


@router.get("/api/gpus")
def get_gpus(backend: BackendDep, defaults: FormDefaultsDep) -> GpuVendors:
    """The vendors of which there are GPUs."""
    return GpuVendors(user=backend.user, vendors=tuple(list_gpu_vendors(backend, defaults)))


@router.get("/api/namespaces/{namespace}/pvcs")
def list_pvcs(backend: BackendDep, namespace: Namespace) -> ClaimSizes:
    """The volumes that a notebook can mount."""
    return ClaimSizes(user=backend.user, pvcs=list_claim_sizes(backend, namespace))


@router.get(_NOTEBOOKS)
def list_notebooks(
    backend: BackendDep, defaults: FormDefaultsDep, namespace: Namespace
) -> Notebooks:
    found = list_items(backend, namespace, defaults)
    return Notebooks(user=backend.user, notebooks=found)


@router.post(_NOTEBOOKS, openapi_extra=describe_body(NotebookForm))
def create_notebook(
    backend: BackendDep,
    defaults: FormDefaultsDep,
    namespace: Namespace,
    body: Body,
    request: RequestKey = None,
) -> Message:
    """Create a notebook and its new volumes, or neither."""
    create(backend, namespace, body, defaults, request)
    return Message(user=backend.user, message="Notebook created successfully.")


@router.get(_NOTEBOOK)
def get_notebook(backend: BackendDep, namespace: Namespace, name: str) -> NotebookResource:
    """The Notebook, and its state as `processed_status`."""
    found = backend.get(_key(namespace, name))
    status = status_of(found, _events(backend, namespace, name))
    notebook = {**found, "processed_status": status.as_json()}
    return NotebookResource(user=backend.user, notebook=notebook)


@router.patch(_NOTEBOOK, openapi_extra=describe_body(StopForm))
def change_notebook(backend: BackendDep, namespace: Namespace, name: str, body: Body) -> Response:
    """Stop or start a notebook."""
    stopped = body.get("stopped")
    if not isinstance(stopped, bool):
        raise UsageError("the body must have the key stopped, which is true or false")
    set_stopped(backend, _key(namespace, name), stopped)
    return Response(user=backend.user)


@router.delete(_NOTEBOOK)
def delete_notebook(backend: BackendDep, namespace: Namespace, name: str) -> Message:
    """Delete a notebook; its volumes are kept."""
    backend.delete(_key(namespace, name))
    return Message(user=backend.user, message=f"Notebook {name} successfully deleted.")


@router.get(f"{_NOTEBOOK}/pod")
def get_pod(backend: BackendDep, namespace: Namespace, name: str) -> PodResource:
    pods = backend.pods_of(_key(namespace, name))
    if not pods:
        raise NotFound("No pod detected.", hint="the notebook is stopped, or is about to start")
    return PodResource(user=backend.user, pod=pods[-1])


@router.get(f"{_NOTEBOOK}/pod/{{pod}}/logs")
def get_logs(backend: BackendDep, namespace: Namespace, name: str, pod: str) -> Logs:
    """The last 10,000 lines that the notebook printed."""
    if pod not in map(name_of, backend.pods_of(_key(namespace, name))):
        raise NotFound(f"the notebook {name} has no Pod {pod[:100]}", hint="ask for its Pod again")
    text = backend.read_log(namespace, pod, name, tail=_MAX_LINES)
    return Logs(user=backend.user, logs=tuple(text.splitlines()))


@router.get(f"{_NOTEBOOK}/events")
def list_events(backend: BackendDep, namespace: Namespace, name: str) -> Events:
    return Events(user=backend.user, events=tuple(_events(backend, namespace, name)))


def _key(namespace: str, name: str) -> Key:
    return Key("Notebook", namespace, name)


def _events(backend: Backend, namespace: str, name: str) -> list[dict[str, Any]]:
    return events_about(backend.list("Event", namespace), "Notebook", name)
