"""The Kubernetes API client of the operator, and the group, version and plural of each kind.

Objects are plain JSON in both directions: typed models would drop fields they do not know, and a
Pod may use fields of a newer Kubernetes.
"""

from collections.abc import Mapping
from typing import Any

import httpx2
from lightkube import AsyncClient
from lightkube.config import client_adapter
from lightkube.config.client_adapter import ConnectionParams
from lightkube.core.exceptions import ApiError
from lightkube.core.resource import ApiInfo, ResourceDef
from lightkube.generic_resource import (
    GenericNamespacedResource,
    GenericNamespacedStatus,
    create_global_resource,
)
from lightkube.types import CascadeType, PatchType

from clew.kube.controller.model import MANAGER
from clew.kube.controller.options import Options
from clew.kube.objects import Json, Key, Object, name_of, namespace_of, uid_of
from clew.kube.training import pod_groups

KINDS = {
    "Notebook": ("kubeflow.org", "v1", "notebooks"),
    "Tensorboard": ("tensorboard.kubeflow.org", "v1alpha1", "tensorboards"),
    "PVCViewer": ("kubeflow.org", "v1alpha1", "pvcviewers"),
    "TFJob": ("kubeflow.org", "v1", "tfjobs"),
    "PyTorchJob": ("kubeflow.org", "v1", "pytorchjobs"),
    "StatefulSet": ("apps", "v1", "statefulsets"),
    "Deployment": ("apps", "v1", "deployments"),
    "Service": ("", "v1", "services"),
    "VirtualService": ("networking.istio.io", "v1alpha3", "virtualservices"),
    "NetworkPolicy": ("networking.k8s.io", "v1", "networkpolicies"),
    "Pod": ("", "v1", "pods"),
    "PersistentVolumeClaim": ("", "v1", "persistentvolumeclaims"),
    "Event": ("", "v1", "events"),
    "HorizontalPodAutoscaler": ("autoscaling", "v2", "horizontalpodautoscalers"),
}
SERVERS = ("Notebook", "Tensorboard", "PVCViewer")
TRAINING_JOBS = ("TFJob", "PyTorchJob")
RESOURCES = (*SERVERS, *TRAINING_JOBS)
_VERBS = [
    *("delete", "get", "global_list", "global_watch"),
    *("list", "patch", "post", "put", "watch"),
]


def kinds_for(options: Options) -> Mapping[str, tuple[str, str, str]]:
    """All kinds, with the PodGroup of the gang scheduler if there is one."""
    if not options.gang_scheduler:
        return KINDS
    return {**KINDS, "PodGroup": (*pod_groups.api_version(options.gang_scheduler), "podgroups")}


def _resource(kind: str, names: tuple[str, str, str]) -> type[GenericNamespacedResource]:
    group, version, plural = names
    info = ApiInfo(resource=ResourceDef(group, version, kind), plural=plural, verbs=_VERBS)
    return type(kind, (GenericNamespacedResource,), {"_api_info": info})


def _status(kind: str) -> type[GenericNamespacedStatus]:
    group, version, plural = KINDS[kind]
    own = ResourceDef(group, version, kind)
    info = ApiInfo(resource=own, parent=own, plural=plural, verbs=["patch"], action="status")
    return type(f"{kind}Status", (GenericNamespacedStatus,), {"_api_info": info})


TYPES: dict[str, Any] = {kind: _resource(kind, names) for kind, names in KINDS.items()}
"""The lightkube class of each kind."""
_NAMESPACE: Any = create_global_resource("", "v1", "Namespace", "namespaces")
_STATUS: dict[str, Any] = {kind: _status(kind) for kind in RESOURCES}


class AlreadyExists(Exception):
    """An object of that name exists already."""


class Conflict(Exception):
    """The object was changed or deleted since it was read."""


class Client:
    """The reads and writes of the operator."""

    def __init__(self, options: Options) -> None:
        limit = httpx2.Timeout(30.0)
        self._api = AsyncClient(field_manager=MANAGER, timeout=limit)
        self._http = client_adapter.AsyncClient(self._api.config, ConnectionParams(timeout=limit))
        self._kinds = kinds_for(options)
        self._types: dict[str, Any] = {
            kind: _resource(kind, names) for kind, names in self._kinds.items()
        }
        self._namespaces = ("*",) if options.all_namespaces else options.namespaces

    async def close(self) -> None:
        await self._api.aclose()
        await self._http.aclose()

    async def get(self, key: Key) -> Json | None:
        try:
            found = await self._api.get(self._types[key.kind], key.name, namespace=key.namespace)
        except ApiError as error:
            if error.status.code == 404:
                return None
            raise
        return dict(found)

    async def get_namespace(self, name: str) -> Json | None:
        """None: it does not exist, or the operator may not read it."""
        try:
            return dict(await self._api.get(_NAMESPACE, name))
        except ApiError as error:
            if error.status.code in (403, 404):
                return None
            raise

    @property
    def own_namespace(self) -> str:
        """The namespace of the operator; outside of a cluster, that of the kubeconfig."""
        return str(self._api.namespace)

    async def create(self, made: Object) -> Json:
        try:
            found = await self._api.create(self._types[made["kind"]](made))
        except ApiError as error:
            if error.status.code == 409 and error.status.reason == "AlreadyExists":
                raise AlreadyExists from error
            raise
        return dict(found)

    async def replace(self, made: Object) -> Json:
        try:
            return dict(await self._api.replace(self._types[made["kind"]](made)))
        except ApiError as error:
            if error.status.code in (404, 409):
                raise Conflict from error
            raise

    async def write_status(self, resource: Object, status: Object) -> None:
        """Fails if the resource was deleted and created again: it then has another uid."""
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": uid_of(resource)},
            {"op": "add", "path": "/status", "value": status},
        ]
        kind = _STATUS[resource["kind"]]
        await self._patch(kind, resource, patch, PatchType.JSON)

    async def annotate(self, resource: Object, annotations: Object) -> None:
        """Change only these annotations; the value None removes one."""
        patch = {"metadata": {"uid": uid_of(resource), "annotations": dict(annotations)}}
        await self._patch(self._types[resource["kind"]], resource, patch, PatchType.MERGE)

    async def merge(self, kind: str, found: Object, patch: Object) -> None:
        await self._patch(self._types[kind], found, patch, PatchType.MERGE)

    async def _patch(self, kind: Any, found: Object, patch: Any, how: PatchType) -> None:
        namespace = namespace_of(found)
        try:
            await self._api.patch(kind, name_of(found), patch, namespace=namespace, patch_type=how)
        except ApiError as error:
            if error.status.code in (404, 409, 422):
                raise Conflict from error
            raise

    async def delete(self, key: Key, *, foreground: bool = False) -> None:
        cascade = CascadeType.FOREGROUND if foreground else CascadeType.BACKGROUND
        try:
            await self._api.delete(
                self._types[key.kind], key.name, namespace=key.namespace, cascade=cascade
            )
        except ApiError as error:
            if error.status.code != 404:
                raise

    async def delete_exactly(self, key: Key, uid: str) -> None:
        """Delete the object with this uid, and no later one of its name."""
        group, version, plural = self._kinds[key.kind]
        api = f"/apis/{group}/{version}" if group else f"/api/{version}"
        answer = await self._http.request(
            "DELETE",
            f"{api}/namespaces/{key.namespace}/{plural}/{key.name}",
            json={"preconditions": {"uid": uid}, "propagationPolicy": "Background"},
        )
        if answer.status_code not in (404, 409):
            answer.raise_for_status()

    async def list_uids(self, kind: str) -> set[str]:
        return {
            uid_of(found)
            for namespace in self._namespaces
            async for found in self._api.list(self._types[kind], namespace=namespace)
        }

    async def knows(self, kind: str) -> bool:
        group, version, plural = self._kinds[kind]
        answer = await self._http.get(f"/apis/{group}/{version}" if group else f"/api/{version}")
        if answer.status_code == 404:
            return False
        answer.raise_for_status()
        return any(found["name"] == plural for found in answer.json()["resources"])
