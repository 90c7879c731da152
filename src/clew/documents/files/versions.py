"""Versions of files: their list, previews of their content, and what restoring one does."""

import os
from base64 import b64decode
from datetime import datetime
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from clew.documents.document import Document
from clew.documents.ids import Digest, ExecutionId, VersionId


class Version(Document, frozen=True, kw_only=True):
    """One state of one file, and the id to ask for it by."""

    id: VersionId = field(name="version")
    path: str
    path_b64: str | UnsetType = UNSET
    execution: ExecutionId
    ordinal: int
    found: bool
    """True: the execution found it there. False: it made it."""
    at: datetime
    digest: Digest | None
    size: int | None
    mode: int | None
    mtime: int | None
    stored: bool
    """Whether its bytes can be restored."""


class Versions(Document, frozen=True, kw_only=True):
    """Oldest first."""

    versions: tuple[Version, ...]


class Point(Struct, frozen=True, array_like=True):
    """One value of a scalar; in JSON an array."""

    step: int
    value: float


class Preview(Document, frozen=True, kw_only=True):
    """The start of a version's content, shown according to its format."""

    version: str
    digest: Digest
    size: int
    kind: Literal["text", "table", "image", "html", "notebook", "scalars", "binary", "empty"]
    media_type: str
    truncated: bool
    text: str | None = None
    columns: tuple[str, ...] | None = None
    rows: tuple[tuple[str, ...], ...] | None = None
    image: str | None = None
    """In Base64; only of small images."""
    series: dict[str, tuple[Point, ...]] | None = None
    """The scalars of a TensorBoard event file."""


class Restored(Document, frozen=True, kw_only=True):
    """The result of a restore, or the plan."""

    version: str
    path: str
    path_b64: str | UnsetType = UNSET
    digest: Digest
    size: int
    replaces: Digest | None
    """The digest of the file that stood there and was different, if one did."""
    loses: bool
    """Whether that file's content is stored nowhere: then it is gone for good."""

    @property
    def place(self) -> bytes:
        """The path in bytes."""
        return b64decode(self.path_b64) if self.path_b64 else os.fsencode(self.path)
