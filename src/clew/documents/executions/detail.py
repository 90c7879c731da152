"""One execution in full, as `clew show` prints it: processes, environment, gaps, files, peers."""

from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType, field

from clew.documents.document import Document
from clew.documents.executions.execution_list import Execution
from clew.documents.ids import Digest, ProcessId, Uid

Role = Literal["input", "output", "transient"]
Category = Literal["data", "configuration", "source", "package", "system"]


class Process(Document, frozen=True, kw_only=True):
    """One program that ran within an execution."""

    id: ProcessId
    uid: Uid
    parent: ProcessId | None
    pid: int | None
    command: tuple[str, ...]
    exe: str | None
    cwd: str | None
    started: datetime
    ended: datetime | None
    status: int | None
    signal: int | None


class Processes(Document, frozen=True, kw_only=True):
    processes: tuple[Process, ...]


class Gap(Document, frozen=True, kw_only=True):
    """Something that could not be observed."""

    what: str
    why: str
    path: str | None
    path_b64: str | UnsetType = UNSET
    by: ProcessId | None
    """The process that it is about."""


class Package(Document, frozen=True, kw_only=True):
    """The package that installed a file."""

    manager: str
    name: str
    version: str | None
    requested: bool | None
    """Whether the user asked for it, or it came along with another."""
    url: str | UnsetType = UNSET
    """Its origin, if it did not come from an index."""
    arch: str | UnsetType = UNSET


class File(Document, frozen=True, kw_only=True):
    """A path and how an execution used it."""

    path: str
    path_b64: str | UnsetType = UNSET
    role: Role
    """transient: written, and gone at the end."""
    category: str = field(name="class")
    """See `Category`."""
    read: bool
    written: bool
    digest: Digest | None
    size: int | None
    stored: bool
    package: Package | None
    versions: int
    """The number of versions of the path that it accessed."""


class Files(Document, frozen=True, kw_only=True):
    """`total`: the number on all pages; `next`: the `offset` of the next page, null on the last."""

    files: tuple[File, ...]
    total: int
    next: int | None


class Peer(Document, frozen=True, kw_only=True):
    """A network peer."""

    address: str
    host: str | None
    port: int | None
    by: str
    """The process that was connected to it, or the execution."""


class ExecutionDetail(Execution, frozen=True, kw_only=True):
    """`files` and `network` only with `detail`."""

    tree: tuple[Process, ...]
    environment: dict[str, Any]
    git: dict[str, Any] | None
    gaps: tuple[Gap, ...]
    credential_files: tuple[str, ...]
    files: tuple[File, ...] | UnsetType = UNSET
    network: tuple[Peer, ...] | UnsetType = UNSET
