"""Errors of the store, and conversion of system errors to them.

ClewError
├── Changed       changed       1   a file changed before or while it was read
├── Oversized     oversized     1   a content is longer than a record of its kind may be
├── TooSparse     too-sparse    1   a file has more holes than are hashed
└── Unreachable   unreachable   1   a remote does not answer
"""

import errno
import os
import sqlite3
from pathlib import Path

from clew.disk_reserve import NO_ROOM, is_full
from clew.errors import MAKE_ROOM, Busy, ClewError, Damaged, Full, NotAllowed, NotFound

REBUILD_HINT = "delete it: it is rebuilt from the packs"
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


class Changed(ClewError):
    code = "changed"
    http_status = 409


class Oversized(ClewError):
    code = "oversized"
    http_status = 422


class TooSparse(ClewError):
    code = "too-sparse"
    http_status = 422


class Unreachable(ClewError):
    code = "unreachable"
    http_status = 502


def from_os(error: OSError, *, doing: str) -> ClewError:
    """The error to raise for a failed system call; `doing` completes "cannot …"."""
    text = f"cannot {doing}: {error.strerror or error}"
    if error.errno in NO_ROOM:
        return Full(text, hint=MAKE_ROOM)
    if error.errno in _FORBIDDEN:
        return NotAllowed(text, hint="check the permissions, or whether the disk is read-only")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(text)
    return ClewError(text)


def from_sqlite(error: sqlite3.Error, *, where: str) -> ClewError:
    """The error to raise when the index cannot be read or written."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    text = f"the index {where} failed: {error}"
    failed = code == sqlite3.SQLITE_IOERR
    if code == sqlite3.SQLITE_FULL or (failed and is_full(Path(where).parent)):
        return Full(f"no space left to write {where}", hint=MAKE_ROOM)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return NotAllowed(text, hint="check the permissions, or whether the disk is read-only")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Busy(text, hint="try again when the other program is done")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Damaged(text, hint=REBUILD_HINT)
    return ClewError(text)


def display_path(path: bytes | str | os.PathLike[str]) -> str:
    """A path as text for a message; undecodable bytes are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")
