"""The interface of back ends of notebooks, TensorBoards and volumes: this machine, or a cluster.

Resources are plain JSON with the fields that Kubernetes gives them, including
`metadata.{name, namespace, uid, resourceVersion, creationTimestamp, labels, annotations}` and the
status that a controller writes. Kinds: `Notebook` (kubeflow.org/v1), `Tensorboard`, `PVCViewer`,
`PodDefault`, `PersistentVolumeClaim`, `Pod`, `Event`, `VolumeSnapshot`, `ResourceQuota`. A back end
that does not have a kind lists none of it.

All methods except `follow_log` block, and may be called from any thread. They raise errors of
`clew.errors`, with the back end's own words in the message:

    NotFound       there is no such resource, or its kind is not installed
    Exists         the name is taken
    Conflict       the resource was changed since it was read, or is in use
    NotAllowed     the back end, its quota or its policies forbid it
    UsageError     the resource is not valid
    Unavailable    the back end does not answer
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol

from clew.documents.workloads.workload import Features, StorageClass
from clew.kube.backend.log_positions import LogChunk
from clew.kube.objects import Json, Key, Object
from clew.workloads.programs import Programs


class Backend(Protocol):
    @property
    def kind(self) -> str:
        """`local` or `cluster`."""

    @property
    def user(self) -> str:
        """The user that the server acts for."""

    @property
    def namespace(self) -> str:
        """The namespace that is used unless another is chosen."""

    @property
    def programs(self) -> Programs | None:
        """The programs it can install; None on a cluster, where images contain them."""

    def namespaces(self) -> Sequence[str]:
        """The namespaces that may be used."""

    def may_read(self, namespace: str, *, user: str | None, groups: Sequence[str]) -> bool:
        """Whether a user of the cluster may see what runs in a namespace; None is the server's own
        account. The answer may be some seconds old."""

    def features(self) -> Features:
        """Its capabilities. Cheap: requested with every page."""

    def set_idle_minutes(self, minutes: float | None) -> None:
        """Stop what was not used for so long; None: nothing. NotAllowed on a cluster, where the
        operator decides."""

    def version(self) -> int:
        """A number that changes whenever a resource, an event or a status changes. Cheap: asked
        several times a second. It never decreases, also not after a restart."""

    def storage_classes(self) -> Sequence[StorageClass]: ...

    def list(
        self, kind: str, namespace: str, *, labels: Mapping[str, str] | None = None
    ) -> Sequence[Json]:
        """All resources of a kind, or those with these labels."""

    def get(self, key: Key) -> Json: ...

    def create(self, resource: Object, *, dry_run: bool = False) -> Json:
        """Create a resource in its `metadata.namespace`. `generateName` is completed. `dry_run`:
        only check whether it could be created."""

    def merge_patch(self, key: Key, patch: Object) -> Json:
        """Apply a JSON merge patch (RFC 7396); null removes a field."""

    def replace(self, resource: Object) -> Json:
        """Replace everything but the status; Conflict if `metadata.resourceVersion` is not the
        current one."""

    def delete(self, key: Key) -> None:
        """Delete a resource and everything made for it. The deletion of a volume that is in use
        ends when it is no longer used."""

    def pods_of(self, key: Key) -> Sequence[Json]:
        """The Pods of a Notebook, Tensorboard or PVCViewer, newest last; locally, one Pod stands
        for its process. For a PersistentVolumeClaim: the Pods that mount it."""

    def read_log(self, namespace: str, pod: str, container: str, *, tail: int | None = None) -> str:
        """The output of a container; `tail`: at most so many of its last lines."""

    def follow_log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        tail: int | None = None,
        after: str | None = None,
    ) -> AsyncGenerator[LogChunk]:
        """The same, and what it prints from now on, until the container ends. `after`: the position
        of a chunk; only what follows it. An unknown position is ignored."""
