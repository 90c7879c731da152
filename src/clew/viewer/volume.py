"""Access to one directory, and to nothing outside it.

All paths are opened relative to the directory that was opened at the start. They contain no `..`;
links are followed only within the directory. Changing links or directories meanwhile does not help
an attacker: the kernel resolves the whole path (`openat2`); on an older kernel each part is opened
alone and no link is followed. Changes are made by an open directory and a name in it.
"""

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clew.confined_files import openat2
from clew.errors import ClewError, Exists, Full, NotAllowed, NotFound, UsageError

_LONGEST_NAME = 255
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PASS = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_BENEATH, _NO_MAGIC = 0x08, 0x02
_NO_REPLACE = 1
_libc = ctypes.CDLL(None, use_errno=True)


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
    def parent(self, path: bytes) -> Iterator[tuple[int, bytes]]:
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

    def stat(self, path: bytes) -> os.stat_result:
        """The status of a path, through links, without opening it."""
        with translate_errors(path), _closing(self._open(path, os.O_PATH | os.O_CLOEXEC)) as found:
            return os.fstat(found)

    def make_directory(self, path: bytes) -> None:
        with self.parent(path) as (directory, name):
            os.mkdir(name, dir_fd=directory)

    def rename(self, path: bytes, new: bytes) -> None:
        """Rename or move something; an existing file is never replaced."""
        old_parts, new_parts = split_path(path), split_path(new)
        if len(new_parts) > len(old_parts) and new_parts[: len(old_parts)] == old_parts:
            raise UsageError("a directory cannot be moved into itself")
        with self.parent(path) as (old_directory, old), self.parent(new) as (directory, name):
            with translate_errors(path):
                os.lstat(old, dir_fd=old_directory)
            rename_new(old_directory, old, directory, name)

    def delete(self, path: bytes, *, recursive: bool = False) -> None:
        """Delete a file, a link (not its target) or a directory; no link is followed."""
        with self.parent(path) as (directory, name):
            if not stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
                os.unlink(name, dir_fd=directory)
            elif recursive:
                shutil.rmtree(os.fsdecode(name), dir_fd=directory)
            else:
                os.rmdir(name, dir_fd=directory)

    def _open(self, path: bytes, flags: int) -> int:
        names = split_path(path)
        if not self._walk:
            return open_beneath(self._root, b"/".join(names) or b".", flags)
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
        os.close(open_beneath(directory, b".", _PASS))
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


def open_beneath(directory: int, path: bytes, flags: int) -> int:
    """Open `path` if it is in the directory. The kernel follows links, and fails with EXDEV as soon
    as one leads out, whatever is renamed meanwhile."""
    return openat2(directory, path, flags, 0, _BENEATH | _NO_MAGIC)


def rename_new(old_directory: int, old: bytes, new_directory: int, new: bytes) -> None:
    """Rename, unless the new name exists."""
    if _libc.renameat2(old_directory, old, new_directory, new, _NO_REPLACE) == 0:
        return
    number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(number, os.strerror(number), os.fsdecode(new))
    try:  # a file system without RENAME_NOREPLACE
        os.lstat(new, dir_fd=new_directory)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fsdecode(new))
