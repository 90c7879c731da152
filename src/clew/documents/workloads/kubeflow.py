"""The responses of Kubeflow's web-app routes: notebooks, TensorBoards and volumes.

Every response has `status`, `success` and `user` beside its data. Fields keep Kubeflow's names,
which are partly in camel case.
"""

from typing import Any

from msgspec import field

from clew.documents.document import Document


class Response(Document, frozen=True, kw_only=True):
    """A bare success."""

    status: int = 200
    success: bool = True
    user: str | None


class Failure(Document, frozen=True, kw_only=True):
    """A request that failed; `log` says why and what to do, `title` and `hint` the two apart."""

    success: bool = False
    log: str
    status: int
    user: str | None
    code: str
    title: str
    hint: str


class Message(Response, frozen=True, kw_only=True):
    message: str


class ResourceStatus(Document, frozen=True, kw_only=True):
    """The state of a resource in plain words."""

    phase: str
    """`ready`, `waiting`, `warning`, `error`, `uninitialized`, `unavailable`, `terminating` or
    `stopped`."""
    message: str
    state: str
    """The reason in one word, as the conditions have it; may be empty."""


class GpuCount(Document, frozen=True, kw_only=True):
    count: int
    message: str
    """Such as `1 NVIDIA`."""


class NotebookItem(Document, frozen=True, kw_only=True):
    """A notebook in a list."""

    name: str
    namespace: str
    server_type: str = field(name="serverType")
    age: str
    """The time of its creation."""
    last_activity: str
    """Empty if it is not known."""
    image: str
    short_image: str = field(name="shortImage")
    cpu: str | None
    memory: str | None
    gpus: GpuCount
    volumes: tuple[str, ...]
    status: ResourceStatus
    metadata: dict[str, Any]
    configurations: tuple[str, ...]
    """The configurations (PodDefaults) that apply to it."""
    idle_minutes: str | None
    """Its own limit of idle time: minutes, or `never`."""


class Notebooks(Response, frozen=True, kw_only=True):
    notebooks: tuple[NotebookItem, ...]


class NotebookResource(Response, frozen=True, kw_only=True):
    notebook: dict[str, Any]
    """The Notebook, and its state as `processed_status`."""


class Config(Response, frozen=True, kw_only=True):
    config: dict[str, Any]
    """The defaults of the form: `spawnerFormDefaults`."""


class GpuVendors(Response, frozen=True, kw_only=True):
    vendors: tuple[str, ...]


class Namespaces(Response, frozen=True, kw_only=True):
    namespaces: tuple[str, ...]


class StorageClasses(Response, frozen=True, kw_only=True):
    storage_classes: tuple[str, ...] = field(name="storageClasses")


class DefaultStorageClass(Response, frozen=True, kw_only=True):
    default_storage_class: str = field(name="defaultStorageClass")


class Info(Response, frozen=True, kw_only=True):
    info: dict[str, Any]


class ClaimSize(Document, frozen=True, kw_only=True):
    """An existing volume that a notebook can mount."""

    name: str
    size: str | None
    mode: str | None


class ClaimSizes(Response, frozen=True, kw_only=True):
    pvcs: tuple[ClaimSize, ...]


class ClaimNames(Response, frozen=True, kw_only=True):
    pvcs: tuple[str, ...]


class PodDefaults(Response, frozen=True, kw_only=True):
    poddefaults: tuple[dict[str, Any], ...]
    """The resources, each with its `label` and `desc`."""


class PodResource(Response, frozen=True, kw_only=True):
    pod: dict[str, Any]


class Pods(Response, frozen=True, kw_only=True):
    pods: tuple[dict[str, Any], ...]


class Logs(Response, frozen=True, kw_only=True):
    logs: tuple[str, ...]
    """Lines."""


class Events(Response, frozen=True, kw_only=True):
    events: tuple[dict[str, Any], ...]


class TensorboardItem(Document, frozen=True, kw_only=True):
    """A TensorBoard in a list."""

    name: str
    namespace: str
    logspath: str
    age: str
    status: ResourceStatus
    configurations: tuple[str, ...]
    """The configurations (PodDefaults) that apply to it."""


class Tensorboards(Response, frozen=True, kw_only=True):
    tensorboards: tuple[TensorboardItem, ...]


class ViewerState(Document, frozen=True, kw_only=True):
    """The file browser of a volume."""

    status: str
    """A phase, as in `ResourceStatus`."""
    url: str | None


class VolumeItem(Document, frozen=True, kw_only=True):
    """A volume in a list."""

    name: str
    namespace: str
    status: ResourceStatus
    age: str
    """The time of its creation, as an HTTP date."""
    capacity: str | None
    modes: tuple[str, ...]
    storage_class: str | None = field(name="class")
    notebooks: tuple[str, ...]
    viewer: ViewerState


class Volumes(Response, frozen=True, kw_only=True):
    pvcs: tuple[VolumeItem, ...]


class VolumeResource(Response, frozen=True, kw_only=True):
    pvc: dict[str, Any]
