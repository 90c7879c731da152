"""Delete volumes, unless something that is not their viewer uses them."""

from contextlib import suppress

from clew.errors import Conflict, NotFound
from clew.kube.cluster_cache import workload_of_pod
from clew.kube.objects import Key, Object, controller_of, dig, name_of
from clew.workloads.backend import Backend
from clew.workloads.changes.creation import key_of
from clew.workloads.volumes import is_viewer_pod


def delete_volume(backend: Backend, namespace: str, name: str) -> None:
    """Delete a volume and its viewers. Conflict: it is in use."""
    key = Key("PersistentVolumeClaim", namespace, name)
    backend.get(key)
    viewers = [
        one for one in backend.list("PVCViewer", namespace) if dig(one, "spec", "pvc") == name
    ]
    users = [pod for pod in backend.pods_of(key) if not is_viewer_pod(pod, viewers)]
    if users:
        names = ", ".join(sorted({_user_of(pod) for pod in users}))
        raise Conflict(
            f"the volume {name} is used by {names}",
            hint="stop or delete what uses it, then delete the volume",
        )
    for viewer in viewers:
        with suppress(NotFound):
            backend.delete(key_of(viewer))
    backend.delete(key)


def _user_of(pod: Object) -> str:
    """The name of what a Pod belongs to."""
    workload = workload_of_pod(pod)
    return workload[1] if workload else str(controller_of(pod).get("name") or name_of(pod))
