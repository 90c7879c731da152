"""What a node sees of the files on its volumes.

An access names the container that made it, never a process: the observer knows by which
mount it came. Paths are absolute within the volume and may hold any byte but zero.
"""

from msgspec import Struct

from clew.documents.ids import Digest, Uid
from clew.prov.events import Version


class FileState(Struct, frozen=True):
    """The inode of a regular file as the observer found it after an access."""

    size: int
    mtime: int
    ctime: int
    mode: int
    born: int = 0
    """When the file was created; 0 where the file system does not tell."""
    links: int = 0
    """How many names it has; 0 where the observer does not tell."""


class FileAccess(Struct, frozen=True, kw_only=True):
    """A container opened a file and read or wrote it. Several accesses may be one: the kernel
    merges them, so the order of a read and a write within one is not known."""

    at: int
    container: Uid
    volume: str
    path: bytes
    handle: bytes = b""
    """Identifies the file on its file system under any name; empty where it is unknown."""
    read: bool = False
    written: bool = False
    closed: bool = True
    """After writing: no descriptor of this open can write any more."""
    modified: bool = True
    """False: it was open for writing, but no write was seen. A write to a mapping is not seen, so
    the state decides."""
    kept: bool | None = None
    """After writing: whether what was there may still be in it; None: the observer cannot tell."""
    state: FileState | None = None
    """None: it was gone when the observer looked."""


class FileRemoval(Struct, frozen=True, kw_only=True):
    """A name was removed."""

    at: int
    container: Uid | None
    """None: a process outside the watched containers, or an unknown one."""
    volume: str
    path: bytes
    handle: bytes = b""


class FileRename(Struct, frozen=True, kw_only=True):
    """A file or directory got another name on the same volume."""

    at: int
    container: Uid | None
    volume: str
    path: bytes
    target: bytes
    handle: bytes = b""
    directory: bool = False
    children: tuple[bytes, ...] = ()
    """Of a directory: the files in it and below, relative to it."""
    state: FileState | None = None


Access = FileAccess | FileRemoval | FileRename


class ContentRequest(Struct, frozen=True, kw_only=True):
    """The fold wants the digest of a file as it is now."""

    at: int
    container: Uid
    """Whose access made the content interesting."""
    volume: str
    path: bytes
    handle: bytes
    state: FileState
    version: Version
    """The version whose content it is."""
    generation: int
    """Which state of the file this asks for; a newer one makes the answer worthless."""
    base_size: int = 0
    base_digest: Digest | None = None
    """What the file held before it was written: to decide whether it was only continued."""


class ContentAnswer(Struct, frozen=True, kw_only=True):
    """What was read for a request. The reader checks that the file did not change meanwhile."""

    digest: Digest
    size: int
    mode: int
    mtime: int
    stored: bool = False
    kept_base: bool = False
    """The file begins with the bytes that `base_digest` names."""
