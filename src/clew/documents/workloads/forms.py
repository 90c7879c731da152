"""Request bodies to create and change notebooks, TensorBoards and volumes.

These types describe the bodies to clients. The server reads plain JSON and checks each field
itself, so that an error can say what to do. Fields have Kubeflow's names.
"""

from typing import Any

from msgspec import UNSET, UnsetType, field

from clew.documents.document import Document


class GpuRequest(Document, frozen=True, kw_only=True):
    num: str
    """A number, or `none`."""
    vendor: str | UnsetType = UNSET
    """The resource name, such as `nvidia.com/gpu`."""


class NewClaim(Document, frozen=True, kw_only=True):
    """A volume to create: the parts of a PersistentVolumeClaim."""

    metadata: dict[str, Any]
    spec: dict[str, Any]


class FormVolume(Document, frozen=True, kw_only=True):
    """A volume to mount: either a new one or an existing one."""

    mount: str
    new_claim: NewClaim | UnsetType = field(name="newPvc", default=UNSET)
    existing: dict[str, Any] | UnsetType = field(name="existingSource", default=UNSET)
    """Such as `{"persistentVolumeClaim": {"claimName": "data"}}`."""
    read_only: bool | UnsetType = field(name="readOnly", default=UNSET)


class NotebookFields(Document, frozen=True, kw_only=True):
    image: str | UnsetType = UNSET
    custom_image: str | UnsetType = field(name="customImage", default=UNSET)
    image_pull_policy: str | UnsetType = field(name="imagePullPolicy", default=UNSET)
    cpu: str | UnsetType = UNSET
    cpu_limit: str | UnsetType = field(name="cpuLimit", default=UNSET)
    memory: str | UnsetType = UNSET
    memory_limit: str | UnsetType = field(name="memoryLimit", default=UNSET)
    gpus: GpuRequest | UnsetType = UNSET
    toleration_group: str | UnsetType = field(name="tolerationGroup", default=UNSET)
    affinity: str | UnsetType = field(name="affinityConfig", default=UNSET)
    configurations: tuple[str, ...] | UnsetType = UNSET
    """The labels that select configurations (PodDefaults)."""
    shm: bool | UnsetType = UNSET
    environment: dict[str, str] | UnsetType = UNSET
    workspace: FormVolume | UnsetType | None = UNSET
    data_volumes: tuple[FormVolume, ...] | UnsetType = field(name="datavols", default=UNSET)
    idle_minutes: float | str | UnsetType | None = field(name="idleMinutes", default=UNSET)
    """After how many idle minutes it is stopped; `never`; null: the usual limit."""


class NotebookEdit(NotebookFields, frozen=True, kw_only=True):
    """Fields of the notebook form; those that are missing stay as they are."""

    stopped: bool | UnsetType = UNSET


class NotebookForm(NotebookFields, frozen=True, kw_only=True):
    """The notebook form. A field that is missing has the administrator's value; only a missing
    `workspace` means that there is none."""

    name: str
    server_type: str | UnsetType = field(name="serverType", default=UNSET)
    """`jupyter`, `group-one` or `group-two`."""
    image_group_one: str | UnsetType = field(name="imageGroupOne", default=UNSET)
    image_group_two: str | UnsetType = field(name="imageGroupTwo", default=UNSET)
    custom_image_check: bool | UnsetType = field(name="customImageCheck", default=UNSET)


class StopForm(Document, frozen=True, kw_only=True):
    """Stop or start it."""

    stopped: bool


class TensorboardForm(Document, frozen=True, kw_only=True):
    """A TensorBoard to create."""

    name: str
    logspath: str
    """`pvc://VOLUME/PATH` or the address of a bucket, such as `s3://BUCKET/PATH`."""
    configurations: tuple[str, ...] | UnsetType = UNSET


class VolumeForm(Document, frozen=True, kw_only=True):
    """A volume to create."""

    name: str
    mode: str
    """`ReadWriteOnce`, `ReadOnlyMany`, `ReadWriteMany` or `ReadWriteOncePod`."""
    size: str
    """Such as `5Gi`."""
    storage_class: str | UnsetType | None = field(name="class", default=UNSET)
    """`{none}`: no storage class; `{empty}`, null or missing: the default one."""
    type: str | UnsetType = UNSET
    snapshot: str | UnsetType = UNSET
    """The name of a snapshot that it begins as a copy of."""


class ViewerForm(Document, frozen=True, kw_only=True):
    """A viewer to open."""

    name: str
    """The name of the volume."""


class YamlForm(Document, frozen=True, kw_only=True):
    """A resource as edited YAML."""

    yaml: str
    base: str | UnsetType = UNSET
    """The YAML before it was edited: 409 if the resource is not like that any more."""


FORMS: tuple[type[Document], ...] = (
    *(NotebookForm, NotebookEdit, StopForm, TensorboardForm),
    *(VolumeForm, ViewerForm, YamlForm),
)
