"""Checkouts: what was written to a directory, and what was changed there."""

from msgspec import UNSET, UnsetType

from clew.documents.document import Document
from clew.documents.ids import ExecutionId, Uid


class MissingFile(Document, frozen=True, kw_only=True):
    """A file that is not in a checkout, because its bytes were not kept."""

    path: str
    path_b64: str | UnsetType = UNSET


class Checkout(Document, frozen=True, kw_only=True):
    """The files of an execution, laid out in a directory."""

    execution: ExecutionId
    uid: Uid
    folder: str
    files: int
    """How many."""
    bytes: int
    missing: tuple[MissingFile, ...]


class CheckoutFile(Document, frozen=True, kw_only=True):
    """A file that was added or deleted: its path below the directory, and its path in the
    execution."""

    path: str
    path_b64: str | UnsetType = UNSET
    original: str
    original_b64: str | UnsetType = UNSET


class ModifiedFile(CheckoutFile, frozen=True, kw_only=True):
    content: bool
    """Whether the bytes differ."""
    mode: tuple[str, str] | None
    """The modes before and after, in octal, if they differ."""


class Changes(Document, frozen=True, kw_only=True):
    """The changes in a checkout."""

    modified: tuple[ModifiedFile, ...] = ()
    added: tuple[CheckoutFile, ...] = ()
    deleted: tuple[CheckoutFile, ...] = ()


class CheckoutStatus(Document, frozen=True, kw_only=True):
    """A checkout, and what was changed in it."""

    execution: ExecutionId
    uid: Uid
    folder: str
    modified: tuple[ModifiedFile, ...]
    added: tuple[CheckoutFile, ...]
    deleted: tuple[CheckoutFile, ...]

    @property
    def clean(self) -> bool:
        return not (self.modified or self.added or self.deleted)
