"""The routes of Kubeflow's volumes app."""

from clew.documents.workloads.forms import ViewerForm, VolumeForm
from clew.documents.workloads.kubeflow import Events, Message, Pods, VolumeResource, Volumes
from clew.kube.objects import Key
from clew.server.kubeflow.app_routes import make_router
from clew.server.kubeflow.request_body import Body, RequestKey, describe_body
from clew.server.v1.dependencies import BackendDep, Namespace
from clew.workloads.changes.creation import create_viewer as open_viewer
from clew.workloads.changes.creation import create_volume as create
from clew.workloads.changes.deletion import delete_volume as delete
from clew.workloads.events import events_about
from clew.workloads.resource_lists import list_volumes as list_items

router = make_router("volumes")

_VOLUMES = "/api/namespaces/{namespace}/pvcs"
_VOLUME = f"{_VOLUMES}/{{name}}"
_VIEWERS = "/api/namespaces/{namespace}/viewers"
_CLAIM = "PersistentVolumeClaim"


@router.get(_VOLUMES)
def list_volumes(backend: BackendDep, namespace: Namespace) -> Volumes:
    return Volumes(user=backend.user, pvcs=list_items(backend, namespace))


@router.post(_VOLUMES, openapi_extra=describe_body(VolumeForm))
def create_volume(
    backend: BackendDep, namespace: Namespace, body: Body, request: RequestKey = None
) -> Message:
    create(backend, namespace, body, request)
    return Message(user=backend.user, message="PVC created successfully.")


@router.get(_VOLUME)
def get_volume(backend: BackendDep, namespace: Namespace, name: str) -> VolumeResource:
    """The volume as Kubernetes describes it."""
    return VolumeResource(user=backend.user, pvc=backend.get(Key(_CLAIM, namespace, name)))


@router.get(f"{_VOLUME}/pods")
def list_pods(backend: BackendDep, namespace: Namespace, name: str) -> Pods:
    """The Pods that mount the volume."""
    found = tuple(backend.pods_of(Key(_CLAIM, namespace, name)))
    return Pods(user=backend.user, pods=found)


@router.get(f"{_VOLUME}/events")
def list_events(backend: BackendDep, namespace: Namespace, name: str) -> Events:
    found = events_about(backend.list("Event", namespace), _CLAIM, name)
    return Events(user=backend.user, events=tuple(found))


@router.delete(_VOLUME)
def delete_volume(backend: BackendDep, namespace: Namespace, name: str) -> Message:
    """Delete a volume with its content, and its viewers. 409: something else uses it."""
    delete(backend, namespace, name)
    return Message(user=backend.user, message=f"PVC {name} successfully deleted.")


@router.post(_VIEWERS, openapi_extra=describe_body(ViewerForm))
def create_viewer(
    backend: BackendDep, namespace: Namespace, body: Body, request: RequestKey = None
) -> Message:
    """Open the file browser of a volume."""
    open_viewer(backend, namespace, body, request)
    return Message(user=backend.user, message="Viewer created successfully.")


@router.delete(f"{_VIEWERS}/{{name}}")
def delete_viewer(backend: BackendDep, namespace: Namespace, name: str) -> Message:
    backend.delete(Key("PVCViewer", namespace, name))
    return Message(user=backend.user, message=f"Viewer {name} successfully deleted.")
