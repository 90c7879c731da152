"""The documents of `clew status`: what a project stores, what is not shared yet, and which files
are different from their record."""

from msgspec import UNSET, UnsetType

from clew.documents.document import Document
from clew.documents.ids import Digest, ExecutionId, Uid


class StoreSize(Document, frozen=True, kw_only=True):
    """The size of a project on disk, in bytes."""

    bytes: int
    """The store of content."""
    reclaimable: int | None
    """What `clew gc` would free in the store; null while another gc or fsck runs."""
    cached: int
    """The cache of repeats, which `clew gc` empties, too."""


class Unpushed(Document, frozen=True, kw_only=True):
    """Executions that a remote does not have."""

    name: str
    url: str
    executions: tuple[ExecutionId, ...]
    error: str | None
    """Why the remote did not answer."""


class ChangedFile(Document, frozen=True, kw_only=True):
    """A file whose content is not what an execution read or wrote last."""

    path: str
    path_b64: str | UnsetType = UNSET
    execution: ExecutionId


class UncheckedFile(Document, frozen=True, kw_only=True):
    path: str
    path_b64: str | UnsetType = UNSET
    execution: ExecutionId
    why: str


class TrackedFiles(Document, frozen=True, kw_only=True):
    """The user's own files that executions read or wrote, compared with the disk."""

    checked: int
    modified: tuple[ChangedFile, ...]
    missing: tuple[ChangedFile, ...]
    unchecked: tuple[UncheckedFile, ...]
    """The first unchecked files; `unchecked_count` has the total."""
    unchecked_count: int


class ServedFile(Document, frozen=True, kw_only=True):
    """A tracked file of the caller's machine, as an execution read or wrote it last."""

    path: str
    path_b64: str | UnsetType = UNSET
    execution: ExecutionId
    digest: Digest
    size: int


class ServedStatus(Document, frozen=True, kw_only=True):
    """The part of the status that a server knows."""

    project: str
    uid: Uid
    store: StoreSize
    files: tuple[ServedFile, ...]
    """The files that were used last; a client compares them with its disk."""
    other_files: int
    """The number of tracked files that are not listed."""


class ProjectStatus(Document, frozen=True, kw_only=True):
    """The state of a project."""

    project: str
    """Its directory."""
    uid: Uid
    executions: int
    store: StoreSize
    remote: Unpushed | None
    """About the default remote, if there is one."""
    unsent: tuple[ExecutionId, ...] | None
    """Executions that were recorded here and that the server does not have yet; null if no server
    is set and nothing waits for one."""
    files: TrackedFiles
