"""Read the current files of a sandbox from outside it.

Links are followed step by step, to know the real path of a file; each step is confined to the
sandbox (`clew.confined_files`), whose processes may change links meanwhile. The digest of an
unchanged initial file is known; any other file is read once for each state it is seen in.
"""

import errno
import os
import stat
import time
from collections.abc import Mapping

from blake3 import blake3

from clew.confined_files import Confined
from clew.witness.syscalls.trace_format import FileState

_MAX_LINKS = 40  # as many links as the kernel follows
_RACY_NS = 2_000_000_000
"""Nanoseconds; coarser than the clock of any file system."""


class SandboxFiles:
    """The files of one sandbox. Call `forget` after a process may have changed a link or
    directory."""

    def __init__(self, files: Confined, given: Mapping[FileState, str]) -> None:
        self._files = files
        self._given = given
        self._directories: dict[bytes, bytes] = {}
        self._digests: dict[tuple[int, ...], str] = {}

    def forget(self) -> None:
        self._directories.clear()

    def resolve_directory(self, path: bytes) -> bytes:
        directory, name = os.path.split(path.rstrip(b"/") or b"/")
        if name in (b".", b".."):
            return self._follow(path)
        if not name:
            return b"/"
        return os.path.join(self._directory(directory), name)

    def _directory(self, directory: bytes) -> bytes:
        known = self._directories.get(directory)
        if known is None:
            known = self._directories[directory] = self._follow(directory)
        return known

    def _follow(self, path: bytes) -> bytes:
        """Resolve every link; components that do not exist are kept."""
        at, rest, links = b"/", [part for part in reversed(path.split(b"/")) if part], 0
        while rest:
            part = rest.pop()
            if part == b".":
                continue
            if part == b"..":
                at = os.path.dirname(at)
                continue
            step = os.path.join(at, part)
            target = self.link(step) if links < _MAX_LINKS else None
            if target is None:
                at = step
                continue
            links += 1
            if target.startswith(b"/"):
                at = b"/"
            rest += [piece for piece in reversed(target.split(b"/")) if piece]
        return at

    def lstat(self, path: bytes) -> os.stat_result:
        return self._files.lstat(path)

    def stat(self, path: bytes) -> os.stat_result:
        settled = self.resolve_directory(path)
        status = self._files.lstat(settled)
        if stat.S_ISLNK(status.st_mode):
            status = self._files.lstat(self._follow(settled))
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        elif path.endswith(b"/") and not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return status

    def link(self, path: bytes) -> bytes | None:
        try:
            return self._files.readlink(path)
        except OSError:
            return None

    def names(self, path: bytes) -> set[bytes] | None:
        try:
            return set(self._files.listdir(self._follow(path))[0])
        except OSError:
            return None

    def found(self, status: os.stat_result) -> bool:
        state = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return state in self._given

    def digest(self, path: bytes, status: os.stat_result) -> str | None:
        if not stat.S_ISREG(status.st_mode):
            return None
        state = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        given = self._given.get(state)
        if given is not None:
            return given
        key = (status.st_dev, *state)
        known = self._digests.get(key)
        return known or self._read(path, key)

    def _read(self, path: bytes, key: tuple[int, ...]) -> str | None:
        hashed = blake3(max_threads=blake3.AUTO)
        try:
            file = self._files.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            while data := os.read(file, 1 << 20):
                hashed.update(data)
            s = os.fstat(file)
        except OSError:
            return None
        finally:
            os.close(file)
        if (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) != key:
            return None  # another process is writing it
        digest = f"blake3:{hashed.hexdigest()}"
        if (
            s.st_ctime_ns + _RACY_NS < time.time_ns()
        ):  # else one more change might show the same times
            self._digests[key] = digest
        return digest
