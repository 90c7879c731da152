"""Pushes and pulls: what one did, and what it transfers beside the events of an execution."""

from typing import Any

from clew.documents.document import Document
from clew.documents.executions.execution_list import Execution
from clew.documents.ids import Digest, Uid


class Transfer(Document, frozen=True, kw_only=True):
    """The result of a push or a pull."""

    url: str
    executions: tuple[Execution, ...]
    """The executions that were transferred, with their ids in this project."""
    bytes: int
    """Bytes that were sent or fetched."""
    remarks: tuple[str, ...]
    """Messages for the user: a name that was dropped, an execution that was left out."""


class RecordParts(Document, frozen=True, kw_only=True):
    """The parts of a record that its events do not contain."""

    source: Uid | None
    """The execution whose reads it inherits."""
    notes: tuple[dict[str, Any], ...]
    """As in docs/formats/remote.md."""
    contents: tuple[Digest, ...]
    """All content that the record names as stored."""
