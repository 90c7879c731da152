"""The parts of Kubernetes objects that are read. Unknown fields are passed over."""

import re
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

import msgspec

from clew.prov.cluster.facets import Owner

MIRROR = "kubernetes.io/config.mirror"
_MAX_LABELS = 1000
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: tuple[str, ...] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None

    @property
    def kept_labels(self) -> dict[str, str]:
        """The labels, of which the API server allows any number."""
        return dict(islice((self.labels or {}).items(), _MAX_LABELS))

    @property
    def owner(self) -> Owner | None:
        """The controller, or the only owner."""
        owners = self.owner_references or ()
        found = next((one for one in owners if one.controller), owners[0] if owners else None)
        if found is None:
            return None
        return Owner(api_version=found.api_version, kind=found.kind, name=found.name, uid=found.uid)


class Terminated(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int = 0
    signal: int | None = None
    reason: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    container_id: str = msgspec.field(default="", name="containerID")


class Running(msgspec.Struct, frozen=True, rename="camel"):
    started_at: datetime | None = None


class ContainerState(msgspec.Struct, frozen=True):
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    restart_count: int = 0
    image: str = ""
    image_id: str = msgspec.field(default="", name="imageID")
    container_id: str = msgspec.field(default="", name="containerID")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class PodAddress(msgspec.Struct, frozen=True):
    ip: str = ""


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    conditions: tuple[Condition, ...] | None = None
    pod_ips: tuple[PodAddress, ...] | None = msgspec.field(default=None, name="podIPs")
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    ephemeral_container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: dict[str, Any] = {}
    status: PodStatus = PodStatus()


class ConfigMap(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None


class ClaimReference(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    volume_name: str = ""
    storage_class_name: str | None = None


class Claim(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()


class VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    csi: dict[str, Any] | None = None
    nfs: dict[str, Any] | None = None
    local: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None


class Volume(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: VolumeSpec = VolumeSpec()


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    cluster_ips: tuple[str, ...] | None = msgspec.field(default=None, name="clusterIPs")


class TargetReference(msgspec.Struct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EndpointConditions(msgspec.Struct, frozen=True):
    ready: bool | None = None
    serving: bool | None = None
    """As `ready`, also while the Pod is being ended: it gets connections if no other Pod can."""

    @property
    def is_serving(self) -> bool:
        return (self.ready if self.serving is None else self.serving) is not False


class Endpoint(msgspec.Struct, frozen=True, rename="camel"):
    conditions: EndpointConditions = EndpointConditions()
    target_ref: TargetReference | None = None


class EndpointSlice(msgspec.Struct, frozen=True):
    metadata: Metadata
    endpoints: tuple[Endpoint, ...] | None = None


class StatusDetails(msgspec.Struct, frozen=True):
    uid: str = ""


class Removed(msgspec.Struct, frozen=True):
    """The answer to a deletion: a Status with details, or the object itself."""

    metadata: Metadata = Metadata()
    details: StatusDetails = StatusDetails()


class Service(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()


class JobStatus(msgspec.Struct, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class Job(msgspec.Struct, frozen=True):
    metadata: Metadata
    status: JobStatus = JobStatus()


class AnyObject(msgspec.Struct, frozen=True, rename="camel"):
    """An object of any kind. `items`: a deletion of many answers with a list."""

    kind: str = ""
    api_version: str = ""
    metadata: Metadata = Metadata()
    items: tuple[msgspec.Raw, ...] | None = None


_Object = TypeVar("_Object")


def decode_object(raw: msgspec.Raw, kind: type[_Object]) -> _Object | None:
    """The object; None if it is not there or of another shape."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def is_name(name: str) -> bool:
    """Whether a text can be the name of an object. In a spec it may be any text, if `optional`."""
    return _NAME.fullmatch(name) is not None


def is_removed(metadata: Metadata, *, deleted: bool) -> bool:
    """Whether an object is gone after this answer. `deleted`: of a request to delete it."""
    if metadata.finalizers:
        return False
    if metadata.deletion_timestamp is None:
        return deleted
    return metadata.deletion_grace_period_seconds in (None, 0)
