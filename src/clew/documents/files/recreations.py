"""Recreating a file: what runs again, and the result."""

from typing import Literal

from msgspec import field

from clew.documents.comparisons.differences import Difference
from clew.documents.document import Document
from clew.documents.files.versions import Restored
from clew.documents.ids import ExecutionId


class Copy(Document, frozen=True, kw_only=True):
    """A file that is needed at another path: it was moved or copied outside Clew."""

    start: str = field(name="from")
    end: str = field(name="to")


class RecreationRun(Document, frozen=True, kw_only=True):
    """An execution that is run again."""

    execution: ExecutionId
    command: tuple[str, ...]
    makes: tuple[str, ...]
    """The paths of the outputs that are needed."""
    copies: tuple[Copy, ...]
    new: ExecutionId | None = field(name="as")
    """The new execution; null before it ran."""


class UnpackedFile(Document, frozen=True, kw_only=True):
    """A file that is taken from a stored archive."""

    archive: str
    member: str | None


class RecreationPlan(Document, frozen=True, kw_only=True):
    """How a file is made again."""

    runs: tuple[RecreationRun, ...]
    """In order."""
    taken: tuple[str, ...]
    """Files that were not stored, and are taken from disk."""
    unpacked: tuple[UnpackedFile, ...]
    verdict: Literal["identical", "different"] = "identical"
    """different: then nothing was written."""
    differences: tuple[Difference, ...] = ()


class Recreated(Restored, frozen=True, kw_only=True):
    """The result of recreating a file, or the plan."""

    runs: tuple[RecreationRun, ...]
    taken: tuple[str, ...]
    unpacked: tuple[UnpackedFile, ...]
    verdict: Literal["identical", "different"]
    differences: tuple[Difference, ...]
    dry_run: bool
