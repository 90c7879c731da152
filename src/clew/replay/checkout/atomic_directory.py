"""Build a directory under a temporary name and publish it in one step.

An existing directory is exchanged with the new one, so that one of the two always exists. For
processes whose working directory is the old one, the old directory is then filled with hard links
to the new files and exchanged back. The next Clew removes what a killed one left.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from clew.errors import Busy, ClewError, NotAllowed
from clew.store.errors import from_os
from clew.tree_removal import remove_tree

_PREFIX = ".clew-checkout-"
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.EXDEV, errno.EBUSY)


@contextlib.contextmanager
def lock_directory(directory: Path) -> Iterator[None]:
    """Lock the directory against other checkouts and commits."""
    try:
        descriptor = _try_lock(directory)
    except NotADirectoryError as error:
        raise NotAllowed(
            f"{directory} is not a directory", hint="name another directory"
        ) from error
    except OSError as error:
        raise from_os(error, doing=f"open {directory}") from error
    if descriptor is None:
        raise Busy(f"another process is writing {directory}", hint="wait until it has ended")
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def staging_directory(directory: Path) -> Iterator[Path]:
    """An empty directory beside `directory`; whatever has its name at the end is removed."""
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        for left in directory.parent.glob(f"{_PREFIX}*"):
            _remove_stale(left)
        descriptor = None
        while descriptor is None:  # swept between its making and its locking
            made = directory.parent / f"{_PREFIX}{secrets.token_hex(8)}"
            made.mkdir()
            descriptor = _try_lock(made)
    except OSError as error:
        raise from_os(error, doing=f"make {directory}") from error
    try:
        yield made
    finally:
        remove_tree(made)
        os.close(descriptor)


def publish(made: Path, directory: Path, *, unchanged: Callable[[Path], None]) -> None:
    """Put the staged directory at `directory`. `unchanged` checks the old content after the
    exchange, when it has no path any more; an exception undoes the exchange."""
    try:
        if not directory.exists():
            made.rename(directory)
            return
        _exchange(made, directory)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise ClewError(
                f"{directory} cannot be replaced in one step here: {error.strerror}",
                hint="check out to a directory that does not exist yet",
            ) from error
        raise from_os(error, doing=f"replace {directory}") from error
    try:
        unchanged(made)
    except BaseException:
        _exchange(made, directory)
        raise
    with contextlib.suppress(OSError):  # then it is another directory, under the same name
        _relink(made, directory)
        _exchange(made, directory)


def _relink(old: Path, new: Path) -> None:
    """Empty the old directory and fill it with hard links to the new files."""
    for entry in list(old.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            remove_tree(entry)
        else:
            entry.unlink()
    for path, directories, files in os.walk(new):
        to = old / Path(path).relative_to(new)
        for name in directories:
            (to / name).mkdir()
        for name in files:
            os.link(os.path.join(path, name), to / name, follow_symlinks=False)


def _exchange(a: Path, b: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(a), os.fsencode(b)
    if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _try_lock(directory: Path) -> int | None:
    """A descriptor that holds the directory's lock; None if it is locked or gone."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
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
