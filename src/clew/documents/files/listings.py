"""A directory as the file browser lists it."""

from typing import Literal

from msgspec import UNSET, UnsetType

from clew.documents.document import Document

EntryKind = Literal["folder", "file", "link", "other"]


class DirectoryEntry(Document, frozen=True, kw_only=True):
    name: str
    href: str
    """The name, percent-encoded: names need not be UTF-8."""
    kind: EntryKind
    size: int
    """Of a file, or of the file that a link leads to; else 0."""
    modified: str
    mode: str
    """As `ls -l` shows it."""
    leads: EntryKind | UnsetType | None = UNSET
    """Of a link: the kind of its target; null if that is outside the volume or does not exist."""


class DirectoryListing(Document, frozen=True, kw_only=True):
    """One page of a directory, directories first."""

    path: str
    writable: bool
    total: int
    """Entries on all pages."""
    offset: int
    entries: tuple[DirectoryEntry, ...]
