"""The documents of notebooks, TensorBoards and volumes in Clew's own API."""

from clew.documents.document import Document


class Culling(Document, frozen=True, kw_only=True):
    """Whether idle notebooks are stopped, and when."""

    enabled: bool
    idle_minutes: float | None
    """Unless a notebook has its own limit; null: never."""


class Features(Document, frozen=True, kw_only=True):
    """The capabilities of the back end; forms name the missing ones."""

    notebooks: bool
    tensorboards: bool
    volumes: bool
    snapshots: bool
    gpus: tuple[str, ...]
    """The vendors' resource names, such as `nvidia.com/gpu`; empty: there is no GPU."""
    culling: Culling


class QuotaUse(Document, frozen=True, kw_only=True):
    """How much of one resource is used."""

    resource: str
    """As Kubernetes names it, such as `requests.cpu` or `persistentvolumeclaims`."""
    used: str
    limit: str
    share: float
    """`used` divided by `limit`."""


class Quota(Document, frozen=True, kw_only=True):
    """The quota of a namespace, and its use."""

    namespace: str
    uses: tuple[QuotaUse, ...]
    """Fullest first."""


class StorageClass(Document, frozen=True, kw_only=True):
    """A kind of storage that new volumes can have."""

    name: str
    default: bool


class StorageClassList(Document, frozen=True, kw_only=True):
    storage_classes: tuple[StorageClass, ...]


class Snapshot(Document, frozen=True, kw_only=True):
    """A snapshot of a volume, which a new volume can be a copy of."""

    name: str
    volume: str | None
    """The volume that it was taken of, if that is known."""
    size: str | None
    """How large a new volume must be at least."""
    ready: bool
    created: str | None


class Snapshots(Document, frozen=True, kw_only=True):
    snapshots: tuple[Snapshot, ...]


class OpenedTensorboard(Document, frozen=True, kw_only=True):
    """A TensorBoard that shows the logs that were asked for."""

    namespace: str
    name: str
    url: str
    """The path under which it is served, once it is ready."""
    created: bool
    """It was created now."""


class Program(Document, frozen=True, kw_only=True):
    """A program that notebooks or TensorBoards need."""

    name: str
    """`jupyterlab` or `tensorboard`."""
    installed: bool
    version: str | None
    can_install: bool


class ProgramInstallation(Document, frozen=True, kw_only=True):
    """The installation of a program."""

    name: str
    state: str
    """`missing`, `installing`, `installed` or `failed`."""
    output: str
    """The last part of what the installer printed."""
    error: str | None


class BackendInfo(Document, frozen=True, kw_only=True):
    """The back end of notebooks, TensorBoards and volumes."""

    kind: str
    """`local`, `cluster` or `none`."""
    namespaces: tuple[str, ...]
    namespace: str | None
    """The one to show first."""
    user: str
    features: Features
    programs: tuple[Program, ...]
    spawner_error: str | None
    """Why the form's configuration was not read; the last good one is used."""
    apps_origin: str | None
    """Where notebooks, TensorBoards and viewers are served; null: as this server, on the port
    `apps_port`, or by a template that differs from target to target."""
    apps_port: int | None


class Condition(Document, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str
    message: str
    at: str | None


class WorkloadEvent(Document, frozen=True, kw_only=True):
    type: str
    """`Normal` or `Warning`."""
    reason: str
    message: str
    at: str | None
    count: int


class Container(Document, frozen=True, kw_only=True):
    name: str
    state: str
    """`running`, `waiting` or `terminated`."""
    ready: bool
    restarts: int


class Workload(Document, frozen=True, kw_only=True):
    """A notebook, TensorBoard, volume or viewer in detail."""

    kind: str
    name: str
    namespace: str
    phase: str
    message: str
    conditions: tuple[Condition, ...]
    events: tuple[WorkloadEvent, ...]
    """Newest first."""
    containers: tuple[Container, ...]
    applied: tuple[str, ...]
    """The configurations (PodDefaults) that were applied."""
    yaml: str
    """The resource without what the system manages; `PUT …/yaml` takes it back."""
    url: str | None
    """The path under which it is served."""
