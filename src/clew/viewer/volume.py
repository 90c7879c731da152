"""Access to one directory, and to nothing outside it.

Everything is opened here, relative to the directory that was opened at the start. Paths hold no
`..`; links inside may be followed as long as they stay inside. Who changes links or directories
while something is opened gains nothing: the kernel resolves the whole path (`openat2`), or, where
it is too old for that, each part is opened by itself and no link is followed at all. What is made,
renamed or deleted is named by an open directory and one name in it.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clew.errors import ClewError, Exists, Full, NotAllowed, NotFound, UsageError
from clew.viewer import linux_calls

_LONGEST_NAME = 255
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PASS = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class Volume:
    def __init__(self, root: Path, *, walk: bool = False) -> None:
        """`walk`: open part by part, as on a kernel without `openat2`."""
        with translate_errors(os.fsencode(root)):
            self._root = os.open(root, _PASS)
        self._walk = walk or not _supports_openat2(self._root)

    def close(self) -> None:
        os.close(self._root)

    @contextmanager
    def directory(self, path: bytes) -> Iterator[int]:
        """Open a directory to list it."""
        with translate_errors(path), _closing(self._open(path, _DIRECTORY)) as found:
            yield found

    @contextmanager
    def place(self, path: bytes) -> Iterator[tuple[int, bytes]]:
        """The open parent directory of a path, and the name in it."""
        *above, name = split_path(path) or [b""]
        if not name:
            raise NotAllowed("the volume itself cannot be changed")
        with translate_errors(path), _closing(self._open(b"/".join(above), _PASS)) as found:
            yield found, name

    @contextmanager
    def file(self, path: bytes) -> Iterator[int]:
        """Open a regular file, also through links."""
        with translate_errors(path), _closing(self.fetch(path)) as found:
            yield found

    def fetch(self, path: bytes) -> int:
        """As `file`, but the caller closes it. Does not wait for a pipe or a device."""
        with translate_errors(path):
            found = self._open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise NotAllowed(f"{display_path(path)} is not a file")
        return found

    def look(self, path: bytes) -> os.stat_result:
        """The status of a path, through links, without opening it."""
        with translate_errors(path), _closing(self._open(path, os.O_PATH | os.O_CLOEXEC)) as found:
            return os.fstat(found)

    def _open(self, path: bytes, flags: int) -> int:
        names = split_path(path)
        if not self._walk:
            return linux_calls.open_beneath(self._root, b"/".join(names) or b".", flags)
        here = os.dup(self._root)
        for name in names[:-1]:
            with _closing(here):
                here = os.open(name, _PASS | os.O_NOFOLLOW, dir_fd=here)
        with _closing(here):
            if flags & os.O_PATH and names:
                _refuse_link(names[-1], here)
            return os.open(names[-1] if names else b".", flags | os.O_NOFOLLOW, dir_fd=here)


def split_path(path: bytes) -> list[bytes]:
    """Split a path into names, and reject invalid ones."""
    names = [name for name in path.split(b"/") if name]
    for name in names:
        if name in (b".", b"..") or b"\0" in name or len(name) > _LONGEST_NAME:
            raise UsageError(f"{display_path(name)} is not a name")
    return names


def display_path(path: bytes) -> str:
    return path.decode(errors="replace") or "the volume"


@contextmanager
def translate_errors(path: bytes) -> Iterator[None]:
    """Convert errors of the system to errors for the user."""
    try:
        yield
    except OSError as error:
        raise _explanation(error, display_path(path)) from error


def _explanation(error: OSError, name: str) -> ClewError:  # noqa: PLR0911 - one for each cause
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR | errno.ESTALE:
            return NotFound(f"there is no {name}")
        case errno.EXDEV | errno.ELOOP:
            return NotAllowed(f"{name} leads out of the volume, or nowhere")
        case errno.EACCES | errno.EPERM:
            return NotAllowed(f"the system allows no access to {name}")
        case errno.EROFS:
            return NotAllowed("the volume cannot be changed: it is mounted to be read only")
        case errno.EEXIST:
            return Exists(f"there is a {name} already")
        case errno.ENOTEMPTY:
            return Exists(f"{name} is not empty")
        case errno.EISDIR:
            return Exists(f"{name} is a directory")
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return Full(f"no room is left for {name}")
        case errno.EINVAL | errno.ENAMETOOLONG:
            return UsageError(f"the volume cannot have this: {name}")
    return ClewError(f"{name}: {error.strerror}")


def _supports_openat2(directory: int) -> bool:
    """Whether the kernel supports `openat2`."""
    try:
        os.close(linux_calls.open_beneath(directory, b".", _PASS))
    except OSError:
        return False
    return True


def _refuse_link(name: bytes, directory: int) -> None:
    if stat.S_ISLNK(os.lstat(name, dir_fd=directory).st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)
