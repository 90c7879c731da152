"""Disk space reserved in `.clew/reserve`, so that `rm` and `gc` work on a full disk.

Both write to databases before they free anything, and a database needs room for its log. Where
less than the reserve is free, they delete it, work in its space, and make it again.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = "reserve"
SIZE = 4 << 20
"""Enough to forget an execution of some thousand files."""
_SHARE = 16
"""On a small or nearly full disk the reserve is this part of what is free."""
_LEAST = 256 << 10
_PAGES = 64 << 10
"""Bytes that a database needs to be opened."""
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def make(directory: Path) -> None:
    """Make the reserve of a `.clew` directory, if it has none and there is room for one."""
    if not (directory / NAME).exists():
        _allocate(directory, min(SIZE, _free(directory) // _SHARE))


@contextmanager
def released(directory: Path) -> Iterator[None]:
    """Free the reserve while the body runs, if there is no room for as much again."""
    size = 0
    with suppress(OSError):
        if not _has_room(directory, SIZE):
            size = (directory / NAME).stat().st_size
            (directory / NAME).unlink()
    try:
        yield
    finally:
        while size >= _LEAST and not _allocate(directory, size):
            size //= 2


def is_full(directory: Path) -> bool:
    """Whether a write failed for lack of space. SQLite, which maps files into memory, reports other
    errors."""
    return not _has_room(directory, _PAGES)


def _allocate(directory: Path, size: int) -> bool:
    """Whether `size` bytes are set aside now; too little is not worth it."""
    if size < _LEAST:
        return False
    draft = directory / f".{NAME}.{os.urandom(4).hex()}"
    try:
        _write(draft, size)
        draft.rename(directory / NAME)
    except OSError:  # no room, or not ours to write
        with suppress(OSError):
            draft.unlink()
        return False
    return True


def _has_room(directory: Path, size: int) -> bool:
    """By trial: what a file system calls free, it may keep for others or for itself."""
    draft = directory / f".{NAME}.{os.urandom(4).hex()}"
    try:
        _write(draft, size)
    except OSError as error:
        return error.errno not in NO_ROOM
    finally:
        with suppress(OSError):
            draft.unlink()
    return True


def _write(path: Path, size: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)


def _free(directory: Path) -> int:
    """Free bytes; 0 if unknown."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return 0
    return found.f_frsize * found.f_bavail
