"""Plain JSON to and from the Kubernetes API.

lightkube reads the settings of the cluster and authenticates, also with tokens that are replaced
while the server runs. Its typed models are not used: they would drop fields they do not know.

Safe to use from any thread. The server acts under its own service account; to act for a user,
another `RestClient` with the headers `Impersonate-User` and `Impersonate-Group` is enough.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import quote

import httpx2
from lightkube.config.client_adapter import AsyncClient, Client, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError

from clew.errors import NotFound
from clew.kube.backend.api_errors import (
    NOUNS,
    explain_failure,
    explain_log_refusal,
    explain_refusal,
)
from clew.kube.client import KINDS
from clew.kube.objects import Json, Key, Object, dig

PATHS = {
    **{
        kind: KINDS[kind]
        for kind in (
            *("Notebook", "Tensorboard", "PVCViewer"),
            *("PersistentVolumeClaim", "Pod", "Event", "Service", "NetworkPolicy"),
        )
    },
    "PodDefault": ("kubeflow.org", "v1alpha1", "poddefaults"),
    "VolumeSnapshot": ("snapshot.storage.k8s.io", "v1", "volumesnapshots"),
    "ResourceQuota": ("", "v1", "resourcequotas"),
    "StorageClass": ("storage.k8s.io", "v1", "storageclasses"),
    "ConfigMap": ("", "v1", "configmaps"),
    "Secret": ("", "v1", "secrets"),
    "EndpointSlice": ("discovery.k8s.io", "v1", "endpointslices"),
    "Lease": ("coordination.k8s.io", "v1", "leases"),
    "Namespace": ("", "v1", "namespaces"),
    "Node": ("", "v1", "nodes"),
}
"""The group, version and plural of each kind."""
_CLUSTER_SCOPED = ("StorageClass", "Namespace", "Node")
MANAGER = "clew-server"
"""The field manager: Kubernetes records under this name which fields the server wrote."""
_PAGE = 500
_TIMEOUT = httpx2.Timeout(30.0, connect=5.0)
WATCH_SECONDS = 120
"""The API server ends a watch after so long."""
_WATCH_TIMEOUT = httpx2.Timeout(30.0, connect=5.0, read=WATCH_SECONDS + 30.0)
"""A watch without an end has lost its connection."""
_LOG_TIMEOUT = httpx2.Timeout(30.0, connect=5.0, read=None)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.:]{0,251}[a-z0-9])?")
_MERGE = {"Content-Type": "application/merge-patch+json"}
_METADATA_ONLY = {
    "Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
}


def resource_path(kind: str, namespace: str | None = None, name: str | None = None) -> str:
    """The path of a resource, or of a list without `name`; in all namespaces without `namespace`.

    Names come from users: a name that Kubernetes would not accept is not put into a path.
    """
    group, version, plural = PATHS[kind]
    for part, noun in ((namespace, "namespace"), (name, NOUNS.get(kind, kind))):
        if part is not None and not _NAME.fullmatch(part):
            raise NotFound(f"there is no {noun} {part[:100]}", hint="check its name")
    parts = ["apis", group, version] if group else ["api", version]
    if namespace is not None and kind not in _CLUSTER_SCOPED:
        parts += ["namespaces", namespace]
    parts.append(plural)
    if name is not None:
        parts.append(name)
    return "/" + "/".join(quote(part, safe="") for part in parts)


class RestClient:
    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        """`headers`: sent with every request."""
        self._config = _load_config()
        self._headers = dict(headers or {})
        self._http = Client(self._config, ConnectionParams(timeout=_TIMEOUT))
        self._http.headers.update(self._headers)

    @property
    def namespace(self) -> str:
        """The namespace of the service account; outside of a cluster, that of the kubeconfig."""
        return str(self._config.namespace)

    @property
    def in_cluster(self) -> bool:
        """Whether it runs in a Pod, with the rights of a service account."""
        return self._config.fname is None

    def close(self) -> None:
        self._http.close()

    def get(self, key: Key) -> Json:
        path = resource_path(key.kind, key.namespace, key.name)
        return _strip(self._send("GET", path, key.kind, key.name), key.kind)

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        label: str | None = None,
        fields: Mapping[str, str] | None = None,
        cached: bool = False,
    ) -> list[Json]:
        """`label`: one that they have, whatever its value. `cached`: as the API server remembers
        them, which may be a moment old."""
        params: dict[str, str] = {"limit": str(_PAGE)}
        if cached:
            params = {"resourceVersion": "0"}  # not in pages
        if labels or label:
            params["labelSelector"] = _selector(labels) if labels else str(label)
        if fields:
            params["fieldSelector"] = _selector(fields)
        found, _ = self._list(kind, namespace, params)
        return [*found]

    def list_with_version(
        self, kind: str, namespace: str, *, labels: Mapping[str, str]
    ) -> tuple[Sequence[Json], str]:
        """The list, and its resourceVersion: a watch that begins there misses nothing."""
        params = {"limit": str(_PAGE), "labelSelector": _selector(labels)}
        return self._list(kind, namespace, params)

    def _list(
        self, kind: str, namespace: str | None, params: dict[str, str]
    ) -> tuple[Sequence[Json], str]:
        """The items, and the resourceVersion of the list."""
        path = resource_path(kind, namespace)
        found: Sequence[Json] = ()
        while True:
            page = self._send("GET", path, kind, params=params)
            found = [*found, *(_strip(item, kind) for item in page.get("items") or ())]
            more = dig(page, "metadata", "continue")
            if not more:
                return found, str(dig(page, "metadata", "resourceVersion"))
            params["continue"] = more

    def create(self, resource: Object, *, dry_run: bool = False) -> Json:
        kind, metadata = str(resource["kind"]), resource["metadata"]
        path = resource_path(kind, metadata.get("namespace"))
        params = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
        if dry_run:
            params["dryRun"] = "All"
        name = str(metadata.get("name") or "")
        return _strip(self._send("POST", path, kind, name, params=params, body=resource), kind)

    def replace(self, resource: Object) -> Json:
        kind, metadata = str(resource["kind"]), resource["metadata"]
        path = resource_path(kind, metadata.get("namespace"), metadata["name"])
        params = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
        answer = self._send("PUT", path, kind, metadata["name"], params=params, body=resource)
        return _strip(answer, kind)

    def merge_patch(self, key: Key, patch: Object) -> Json:
        path = resource_path(key.kind, key.namespace, key.name)
        params = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
        answer = self._send(
            "PATCH", path, key.kind, key.name, params=params, body=patch, headers=_MERGE
        )
        return _strip(answer, key.kind)

    def delete(
        self, key: Key, *, foreground: bool = False, grace_seconds: int | None = None
    ) -> None:
        """`foreground`: the resource stays until everything made for it is deleted.
        `grace_seconds`: how long the processes of a Pod may take to end."""
        path = resource_path(key.kind, key.namespace, key.name)
        params = {"propagationPolicy": "Foreground" if foreground else "Background"}
        if grace_seconds is not None:
            params["gracePeriodSeconds"] = str(grace_seconds)
        self._send("DELETE", path, key.kind, key.name, params=params)

    def has_kind(self, kind: str) -> bool:
        group, version, plural = PATHS[kind]
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            found = self._send("GET", path, kind)
        except NotFound:
            return False
        return any(each["name"] == plural for each in found.get("resources") or ())

    def review_access(
        self, namespace: str, *, user: str | None, groups: Sequence[str] = ()
    ) -> bool:
        """Whether a user, else this client itself, may list the Pods of a namespace."""
        kind = "SelfSubjectAccessReview" if user is None else "SubjectAccessReview"
        asked = {"namespace": namespace, "verb": "list", "resource": "pods"}
        spec: dict[str, object] = {"resourceAttributes": asked}
        if user is not None:
            spec |= {"user": user, "groups": [*groups]}
        api = "authorization.k8s.io/v1"
        body = {"apiVersion": api, "kind": kind, "spec": spec}
        answer = self._send("POST", f"/apis/{api}/{kind.lower()}s", kind, body=body)
        return dig(answer, "status", "allowed") is True

    def read_log(self, namespace: str, pod: str, container: str, tail: int | None) -> str:
        path, params = _log_request(namespace, pod, container, tail)
        with _failures_explained():
            answer = self._http.get(path, params=params)
        if answer.is_error:
            raise explain_log_refusal(answer.status_code, _read_status(answer), pod, container)
        return answer.content.decode(errors="replace")

    @asynccontextmanager
    async def stream_log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        tail: int | None = None,
        since: str | None = None,
        follow: bool = True,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The log of a container, each line with its time. `since`: a time in whole seconds;
        `tail` counts only without it. Without `follow`, what there is, ten times as fast."""
        path, params = _log_request(namespace, pod, container, None if since else tail)
        given = {**params, "timestamps": "true"} | ({"follow": "true"} if follow else {})
        if since:
            given["sinceTime"] = since
        async with self._stream(path, given, timeout=_LOG_TIMEOUT) as answer:
            if answer.is_error:
                raise explain_log_refusal(answer.status_code, _read_status(answer), pod, container)
            yield answer.aiter_raw()

    @asynccontextmanager
    async def watch(
        self,
        kind: str,
        namespace: str | None,
        params: Mapping[str, str],
        *,
        metadata_only: bool = False,
    ) -> AsyncIterator[AsyncIterator[Json]]:
        """The events of a watch."""
        path = resource_path(kind, namespace)
        given = {**params, "watch": "true", "timeoutSeconds": str(WATCH_SECONDS)}
        headers = _METADATA_ONLY if metadata_only else {}
        async with self._stream(path, given, headers=headers, timeout=_WATCH_TIMEOUT) as answer:
            _raise_for_refusal(answer, kind, "")

            async def events() -> AsyncIterator[Json]:
                async for line in answer.aiter_lines():
                    if line:
                        yield json.loads(line)

            yield events()

    def list_version(self, kind: str, namespace: str | None, params: Mapping[str, str]) -> str:
        """The resourceVersion of a list: a watch that begins there misses nothing."""
        path = resource_path(kind, namespace)
        answer = self._send("GET", path, kind, params={**params, "limit": "1"})
        return str(dig(answer, "metadata", "resourceVersion"))

    @asynccontextmanager
    async def _stream(
        self,
        path: str,
        params: Mapping[str, str],
        *,
        timeout: httpx2.Timeout,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """Begin a response that may never end. It has been read if it is a refusal.

        A client for each: streams would use up the connections of other requests, and each belongs
        to the event loop of its caller.
        """
        async with AsyncClient(self._config, ConnectionParams(timeout=timeout)) as http:
            given = {**self._headers, **(headers or {})}
            with _failures_explained():
                async with http.stream("GET", path, params=params, headers=given) as answer:
                    if answer.is_error:
                        await answer.aread()
                    yield answer

    def _send(
        self,
        method: str,
        path: str,
        kind: str,
        name: str = "",
        *,
        params: Mapping[str, str] | None = None,
        body: Object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        content = None if body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if body is not None else {}
        with _failures_explained():
            answer = self._http.request(
                method, path, params=params, content=content, headers=given | dict(headers or {})
            )
        _raise_for_refusal(answer, kind, name)
        found: Json = answer.json()
        return found


def _load_config() -> SingleConfig:
    with _failures_explained():
        config = KubeConfig.from_env().get()
        assert config is not None
        return config


@contextmanager
def _failures_explained() -> Iterator[None]:
    try:
        yield
    except (httpx2.HTTPError, ConfigError) as error:
        raise explain_failure(error) from error


def _raise_for_refusal(answer: httpx2.Response, kind: str, name: str) -> None:
    if not answer.is_success:
        raise explain_refusal(answer.status_code, _read_status(answer), kind, name)


def _read_status(answer: httpx2.Response) -> Json:
    """The Status of Kubernetes; empty if the response came from something else on the way."""
    try:
        body: Any = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _log_request(
    namespace: str, pod: str, container: str, tail: int | None
) -> tuple[str, dict[str, str]]:
    params = {"container": container}
    if tail is not None:
        params["tailLines"] = str(tail)
    return resource_path("Pod", namespace, pod) + "/log", params


def _selector(wanted: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in wanted.items())


def _strip(found: Json, kind: str) -> Json:
    """With its kind, which items of a list may lack; without the managed fields, which are larger
    than the rest."""
    group, version, _ = PATHS[kind]
    metadata = {k: v for k, v in found["metadata"].items() if k != "managedFields"}
    api = f"{group}/{version}" if group else version
    return {**found, "apiVersion": api, "kind": kind, "metadata": metadata}
