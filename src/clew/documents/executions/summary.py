"""The summary of an execution that `clew show` prints."""

from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType, field

from clew.documents.document import Document
from clew.documents.executions.detail import ExecutionDetail
from clew.documents.ids import Digest, ExecutionId, TaskId, Uid
from clew.documents.project.notes import Note


class OwnFile(Document, frozen=True, kw_only=True):
    """A file that belongs to neither a package nor the system."""

    path: str
    path_b64: str | UnsetType = UNSET
    class_: str = field(name="class")
    size: int | None
    digest: Digest | None
    made_by: ExecutionId | None
    """The execution that made it, if it is an input that another one made."""


class OwnFiles(Document, frozen=True, kw_only=True):
    """The first files, and how many there are in all."""

    total: int
    files: tuple[OwnFile, ...]


class RequestedPackage(Document, frozen=True, kw_only=True):
    """A package that the user installed, not a dependency of another."""

    manager: str
    name: str
    version: str | None


class Relative(Document, frozen=True, kw_only=True):
    """An execution that another one was derived from, or that was derived from it."""

    id: ExecutionId
    uid: Uid
    started: datetime | None
    name: str | None
    task: TaskId | None
    command: tuple[str, ...]
    how: Literal["file", "copy", "parameter", "repetition", "modification"]
    """It read a file that the other made, or one with the same bytes; it got a parameter from the
    other task; or it repeats the other, with other words or files if it is a modification."""
    paths: tuple[str, ...]
    """The files, for `file` and `copy`."""


class Relatives(Document, frozen=True, kw_only=True):
    """The first relatives, and how many there are in all."""

    total: int
    executions: tuple[Relative, ...]


class ExecutionSummary(ExecutionDetail, frozen=True, kw_only=True):
    """An execution as `clew show` prints it."""

    notes: tuple[Note, ...]
    parameters: dict[str, Any]
    packages: tuple[RequestedPackage, ...]
    own_inputs: OwnFiles
    own_outputs: OwnFiles
    derived_from: Relatives
    derived: Relatives
