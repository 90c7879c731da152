"""Build a directory under a temporary name and publish it in one step.

An existing directory is exchanged with the new one, so that one of the two always exists. For
processes whose working directory is the old one, the old directory is then filled with hard links
to the new files and exchanged back. The next Clew removes what a killed one left.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from clew.errors import Busy, ClewError, NotAllowed
from clew.run.execution_locks import remove_tree
from clew.store.errors import from_os

_PREFIX = ".clew-checkout-"
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.EXDEV, errno.EBUSY)


@contextlib.contextmanager
def lock_directory(folder: Path) -> Iterator[None]:
    """Lock the directory against other checkouts and commits."""
    try:
        descriptor = _try_lock(folder)
    except NotADirectoryError as error:
        raise NotAllowed(f"{folder} is not a folder", hint="name another folder") from error
    except OSError as error:
        raise from_os(error, doing=f"open {folder}") from error
    if descriptor is None:
        raise Busy(f"another process is writing {folder}", hint="wait until it has ended")
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def staging_directory(folder: Path) -> Iterator[Path]:
    """An empty directory beside `folder`; whatever has its name at the end is removed."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for left in folder.parent.glob(f"{_PREFIX}*"):
            _remove_stale(left)
        descriptor = None
        while descriptor is None:  # swept between its making and its locking
            made = folder.parent / f"{_PREFIX}{secrets.token_hex(8)}"
            made.mkdir()
            descriptor = _try_lock(made)
    except OSError as error:
        raise from_os(error, doing=f"make {folder}") from error
    try:
        yield made
    finally:
        remove_tree(made)
        os.close(descriptor)


def publish(made: Path, folder: Path, *, unchanged: Callable[[Path], None]) -> None:
    """Put the staged directory at `folder`. `unchanged` checks the old content after the exchange,
    when it has no path any more; an exception undoes the exchange."""
    try:
        if not folder.exists():
            made.rename(folder)
            return
        _exchange(made, folder)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise ClewError(
                f"{folder} cannot be replaced in one step here: {error.strerror}",
                hint="check out to a folder that does not exist yet",
            ) from error
        raise from_os(error, doing=f"replace {folder}") from error
    try:
        unchanged(made)
    except BaseException:
        _exchange(made, folder)
        raise
    with contextlib.suppress(OSError):  # then it is another folder, under the same name
        _relink(made, folder)
        _exchange(made, folder)


def _relink(old: Path, new: Path) -> None:
    """Empty the old directory and fill it with hard links to the new files."""
    for entry in list(old.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            remove_tree(entry)
        else:
            entry.unlink()
    for path, folders, files in os.walk(new):
        to = old / Path(path).relative_to(new)
        for name in folders:
            (to / name).mkdir()
        for name in files:
            os.link(os.path.join(path, name), to / name, follow_symlinks=False)


def _exchange(one: Path, other: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _try_lock(folder: Path) -> int | None:
    """A descriptor that holds the directory's lock; None if it is locked or gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:
            return descriptor
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None


def _remove_stale(left: Path) -> None:
    """Remove what a killed process left."""
    descriptor = _try_lock(left)
    if descriptor is not None:
        remove_tree(left)
        os.close(descriptor)
