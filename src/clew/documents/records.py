"""What is transferred with the events of an execution."""

from typing import Any

from clew.documents.document import Document
from clew.documents.ids import Digest, Uid


class RecordParts(Document, frozen=True, kw_only=True):
    """The parts of a record that its events do not contain."""

    source: Uid | None
    """The execution whose reads it inherits."""
    notes: tuple[dict[str, Any], ...]
    """As in docs/formats/remote.md."""
    contents: tuple[Digest, ...]
    """All content that the record names as stored."""
