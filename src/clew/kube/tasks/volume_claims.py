"""Create and delete the volumes of a pipeline (`CreatePVC`, `DeletePVC`)."""

from collections.abc import Mapping

from msgspec import Struct

from clew.errors import Exists, NotFound
from clew.kube.backend.rest_client import RestClient
from clew.kube.objects import Json, Key, annotations_of, labels_of
from clew.kube.tasks.task_pod import RUN_LABEL, TASK_ANNOTATION


class TaskClaim(Struct, frozen=True, kw_only=True):
    """A PersistentVolumeClaim that a task creates; it outlives the run."""

    name: str
    namespace: str
    run: str
    task: str
    size: str
    access_modes: tuple[str, ...]
    storage_class: str | None = None
    """None is the default of the cluster; empty is a volume that exists without one."""
    volume: str = ""
    """The PersistentVolume to bind it to."""
    annotations: Mapping[str, str] = {}
    data_source: Mapping[str, str] = {}
    """The snapshot or claim that it begins as a copy of."""


def create_claim(client: RestClient, claim: TaskClaim) -> None:
    """Create it; also succeeds if the same task of the same run has created it already."""
    try:
        client.create(build_claim(claim))
    except Exists:
        found = client.get(Key("PersistentVolumeClaim", claim.namespace, claim.name))
        own = labels_of(found).get(RUN_LABEL) == claim.run
        if not own or annotations_of(found).get(TASK_ANNOTATION) != claim.task:
            raise


def delete_claim(client: RestClient, namespace: str, name: str) -> None:
    """Delete it; also succeeds if it is gone. A volume that Pods use goes when they have ended."""
    try:
        client.delete(Key("PersistentVolumeClaim", namespace, name))
    except NotFound:
        return


def build_claim(claim: TaskClaim) -> Json:
    spec: Json = {
        "accessModes": list(claim.access_modes),
        "resources": {"requests": {"storage": claim.size}},
    }
    if claim.storage_class is not None:
        spec["storageClassName"] = claim.storage_class
    if claim.volume:
        spec["volumeName"] = claim.volume
    if claim.data_source:
        spec["dataSource"] = dict(claim.data_source)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim.name,
            "namespace": claim.namespace,
            "labels": {RUN_LABEL: claim.run},
            "annotations": {**claim.annotations, TASK_ANNOTATION: claim.task},
        },
        "spec": spec,
    }
