"""Files below a directory that someone else controls, such as the root directory of a sandbox.

A path, a link or a `..` in it never leads out of the directory, whatever is renamed there
meanwhile: the kernel resolves every path with that directory as the root (openat2(2),
RESOLVE_IN_ROOT). Opening `directory + path` would follow an absolute link to a file of the host,
and store its bytes.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from struct import Struct

_OPENAT2 = 437  # on every architecture
_NO_MAGIC_LINKS, _IN_ROOT = 0x02, 0x10
_TRIES = 64
_HOW = Struct("=QQQ")  # struct open_how


@cache
def _kernel() -> Callable[[int, bytes, bytes], tuple[int, int]]:
    import ctypes  # most commands need none of this

    libc = ctypes.CDLL(None, use_errno=True)

    def call(directory: int, path: bytes, how: bytes) -> tuple[int, int]:
        found = libc.syscall(_OPENAT2, directory, path, how, len(how))
        return int(found), ctypes.get_errno()

    return call


def openat2(directory: int, path: bytes, flags: int, mode: int, resolve: int) -> int:
    """The system call, which Python has no name for; a descriptor that programs do not inherit."""
    how = _HOW.pack(flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, resolve)
    for _ in range(_TRIES):
        found, number = _kernel()(directory, path, how)
        if found >= 0:
            return found
        if number not in (errno.EAGAIN, errno.EINTR):  # something was renamed under it
            break
    raise OSError(number, os.strerror(number), os.fsdecode(path))


class Confined:
    """The files below the open directory `root`, by absolute paths; None: those of this machine."""

    def __init__(self, root: int | None = None) -> None:
        self._root = root

    @property
    def path(self) -> bytes:
        """Where the directory is seen from here, for `clew.safe_path`, which follows no links."""
        return b"/" if self._root is None else b"/proc/self/fd/%d" % self._root

    def open(self, path: bytes, flags: int) -> int:
        if self._root is None:
            return os.open(path, flags)
        return openat2(self._root, path, flags, 0, _IN_ROOT | _NO_MAGIC_LINKS)

    def stat(self, path: bytes) -> os.stat_result:
        if self._root is None:
            return os.stat(path)
        with self._opened(path, os.O_PATH) as file:
            return os.fstat(file)

    def lstat(self, path: bytes) -> os.stat_result:
        if self._root is None:
            return os.lstat(path)
        with self._opened(path, os.O_PATH | os.O_NOFOLLOW) as file:
            return os.fstat(file)

    def readlink(self, path: bytes) -> bytes:
        if self._root is None:
            return os.readlink(path)
        with self._opened(path, os.O_PATH | os.O_NOFOLLOW) as file:
            return os.readlink(b"", dir_fd=file)

    def listdir(self, path: bytes) -> tuple[list[bytes], os.stat_result]:
        """The names in a directory, and its state."""
        with self._opened(path, os.O_RDONLY | os.O_DIRECTORY) as directory:
            return [os.fsencode(name) for name in os.listdir(directory)], os.fstat(directory)

    @contextmanager
    def _opened(self, path: bytes, flags: int) -> Iterator[int]:
        file = self.open(path, flags)
        try:
            yield file
        finally:
            os.close(file)


HOST = Confined()
"""This machine's own files: nothing is confined."""
