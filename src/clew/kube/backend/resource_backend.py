"""Notebooks, TensorBoards and volumes of a cluster, through the Kubernetes API.

Satisfies `workloads.backend.Backend`: see there what each method promises.

Who may create a notebook in a namespace may use every service account there. So the namespaces of
Kubernetes itself, and the one where the server and the operator run, are not offered and not used.
"""

import asyncio
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from clew.documents.workloads.workload import Culling, Features, StorageClass
from clew.errors import Conflict, NotAllowed, NotFound, Unavailable
from clew.kube.backend.log_positions import LogChunk, LogLines, parse_position
from clew.kube.backend.rest_client import RestClient
from clew.kube.backend.version_watch import VersionWatch
from clew.kube.cluster_cache import workload_of_pod
from clew.kube.objects import Json, Key, Object, annotations_of, dig, is_deleting, name_of
from clew.kube.resources.viewers import child_name

_SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
_OWNERS = ("Notebook", "Tensorboard", "PVCViewer")
_OPTIONAL = ("Notebook", "Tensorboard", "PVCViewer", "PodDefault", "VolumeSnapshot")
"""Kinds that a cluster may lack: it then has none of them."""
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_GPU = re.compile(r"[^/]+/.*(gpu|gaudi|mig-|tpu|npu|xpu).*", re.I)
_CACHE_SECONDS = 30.0
_MOST_CACHED = 10_000
_RETRY_SECONDS = 1.0

Value = TypeVar("Value")


class ResourceBackend:
    kind = "cluster"
    programs = None

    def __init__(
        self,
        *,
        user: str,
        culling: Culling,
        namespaces: Sequence[str] = (),
        client: RestClient | None = None,
    ) -> None:
        """`user`: how the server's one identity is named; `culling`: what the operator does;
        `namespaces`: names or patterns of those that may be used, empty: all."""
        self._client = client or RestClient()
        self._culling = culling
        self._patterns = tuple(namespaces)
        own = (self._client.namespace,) if self._client.in_cluster else ()
        self._reserved = (*_SYSTEM_NAMESPACES, *own)
        self.user = user
        self._cached: dict[str, tuple[float, object]] = {}
        self._lock = threading.Lock()
        self._watch: VersionWatch | None = None

    def close(self) -> None:
        self._client.close()

    @property
    def namespace(self) -> str:
        names = self.namespaces()
        usual = (name for name in (self._client.namespace, "default") if name in names)
        return next(usual, names[0] if names else "default")

    def namespaces(self) -> Sequence[str]:
        """The namespaces that the server may use; if it cannot list them, those that were
        named."""
        found = self._all_namespaces()
        if found is None:
            named = [name for name in self._patterns if "*" not in name]
            found = tuple(named or [self._client.namespace])
        return [name for name in found if self._uses(name)]

    def _all_namespaces(self) -> tuple[str, ...] | None:
        """None: the server may not list them."""
        return self._remember("namespaces", self._list_namespaces)

    def _list_namespaces(self) -> tuple[str, ...] | None:
        try:
            found = self._client.list("Namespace", cached=True)
        except NotAllowed:
            return None
        return tuple(sorted(name_of(each) for each in found if not is_deleting(each)))

    def _uses(self, namespace: str) -> bool:
        named = not self._patterns or any(fnmatchcase(namespace, one) for one in self._patterns)
        return named and namespace not in self._reserved

    def _check(self, namespace: str) -> str:
        if not self._uses(namespace):
            raise NotAllowed(
                f"the namespace {namespace[:100]} cannot be used here",
                hint="choose one of the namespaces that are offered",
            )
        return namespace

    def may_read(self, namespace: str, *, user: str | None, groups: Sequence[str]) -> bool:
        name = f"read {namespace} {user} {groups}"
        if len(self._cached) > _MOST_CACHED:
            self._cached.clear()
        return self._remember(
            name, lambda: self._client.review_access(namespace, user=user, groups=groups)
        )

    def features(self) -> Features:
        return self._remember("features", self._find_features)

    def set_idle_minutes(self, minutes: float | None) -> None:
        raise NotAllowed(
            "the cluster's operator decides when idle notebooks are stopped",
            hint="an administrator changes ENABLE_CULLING and CULL_IDLE_TIME in the ConfigMap"
            " clew-culling; a single notebook can have its own limit",
        )

    def _find_features(self) -> Features:
        has = self._client.has_kind
        return Features(
            notebooks=has("Notebook"),
            tensorboards=has("Tensorboard"),
            volumes=True,
            snapshots=has("VolumeSnapshot"),
            gpus=self._find_gpus(),
            culling=self._culling,
        )

    def _find_gpus(self) -> tuple[str, ...]:
        try:
            nodes = self._client.list("Node", cached=True)
        except NotAllowed:
            return ()
        return gpu_names(nodes)

    def version(self) -> int:
        """0 as long as the cluster has not answered."""
        with self._lock:
            if self._watch is None:
                try:
                    self._watch = VersionWatch(self._client, self._watched_namespaces())
                except Unavailable:
                    return 0
        return self._watch.version()

    def _watched_namespaces(self) -> Sequence[str | None]:
        """None: all of them, by one watch."""
        if self._patterns and not any("*" in name for name in self._patterns):
            return self._patterns
        return self.namespaces() if self._all_namespaces() is None else [None]

    def storage_classes(self) -> Sequence[StorageClass]:
        def is_default(found: Object) -> bool:
            return any(annotations_of(found).get(name) == "true" for name in _DEFAULT_CLASS)

        found = self._remember("classes", lambda: self._client.list("StorageClass", cached=True))
        return [StorageClass(name=name_of(each), default=is_default(each)) for each in found]

    def list(
        self, kind: str, namespace: str, *, labels: Mapping[str, str] | None = None
    ) -> Sequence[Json]:
        try:
            return self._client.list(kind, self._check(namespace), labels=labels)
        except NotFound:
            if kind in _OPTIONAL:
                return []
            raise

    def get(self, key: Key) -> Json:
        self._check(key.namespace)
        return self._client.get(key)

    def create(self, resource: Object, *, dry_run: bool = False) -> Json:
        self._check(resource["metadata"]["namespace"])
        return self._client.create(resource, dry_run=dry_run)

    def merge_patch(self, key: Key, patch: Object) -> Json:
        self._check(key.namespace)
        return self._client.merge_patch(key, patch)

    def replace(self, resource: Object) -> Json:
        self._check(resource["metadata"]["namespace"])
        return self._client.replace(resource)

    def delete(self, key: Key) -> None:
        self._check(key.namespace)
        self._client.delete(key, foreground=key.kind in _OWNERS)

    def pods_of(self, key: Key) -> Sequence[Json]:
        self._check(key.namespace)
        if key.kind == "PersistentVolumeClaim":
            pods = self._client.list("Pod", key.namespace)
            return _newest_last(pod for pod in pods if key.name in claims_of(pod))
        labels, workload = pod_labels(key)
        pods = self._client.list("Pod", key.namespace, labels=labels)
        return _newest_last(pod for pod in pods if workload_of_pod(pod) == workload)

    def read_log(self, namespace: str, pod: str, container: str, *, tail: int | None = None) -> str:
        self._check(namespace)
        try:
            return self._client.read_log(namespace, pod, container, tail)
        except Conflict:
            return ""

    async def follow_log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        tail: int | None = None,
        after: str | None = None,
    ) -> AsyncGenerator[LogChunk]:
        """Waits for a container that has not started yet."""
        self._check(namespace)
        start = parse_position(after) if after else None
        lines = LogLines(start)
        since = start and start.since
        while True:
            try:
                async with self._client.stream_log(
                    namespace, pod, container, tail=tail, since=since
                ) as chunks:
                    async for chunk in chunks:
                        if text := lines.feed(chunk):
                            yield LogChunk(text, str(lines.position))
                break
            except Conflict:
                await asyncio.sleep(_RETRY_SECONDS)
        if text := lines.end():
            yield LogChunk(text, str(lines.position))

    def _remember(self, name: str, find: Callable[[], Value]) -> Value:
        """Cache for some seconds what every page requests."""
        found = self._cached.get(name)
        if found is None or time.monotonic() - found[0] > _CACHE_SECONDS:
            found = time.monotonic(), find()
            self._cached[name] = found
        value: Value = found[1]  # type: ignore[assignment]  # a name always has the same type
        return value


def pod_labels(key: Key) -> tuple[dict[str, str], tuple[str, str]]:
    """The labels that the operator gives to the Pods of a resource, and the workload they are of:
    a Pod of another owner may have these labels, too."""
    if key.kind == "Notebook":
        return {"notebook-name": key.name}, ("StatefulSet", key.name)
    if key.kind == "PVCViewer":
        name = child_name(key.name)
        return {"app.kubernetes.io/instance": name}, ("Deployment", name)
    return {"app": key.name}, ("Deployment", key.name)


def claims_of(pod: Object) -> set[str]:
    volumes = dig(pod, "spec", "volumes") or ()
    return {dig(volume, "persistentVolumeClaim", "claimName") for volume in volumes} - {None}


def gpu_names(nodes: Sequence[Object]) -> tuple[str, ...]:
    """The resource names of the GPUs that some node has."""
    found = {
        name
        for node in nodes
        for name, count in (dig(node, "status", "allocatable") or {}).items()
        if _GPU.fullmatch(name) and str(count) != "0"
    }
    return tuple(sorted(found))


def _newest_last(pods: Iterable[Json]) -> list[Json]:
    return sorted(pods, key=lambda pod: str(dig(pod, "metadata", "creationTimestamp")))
