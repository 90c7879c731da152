"""Uploads: a file is written to a draft beside its path, and renamed when it is complete.

A file may come in several parts in order (`Content-Range`). An interrupted upload stays and can be
resumed by a client that knows its key, which the client chose.
"""

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from clew.errors import Busy, Exists, NotAllowed
from clew.viewer.byte_ranges import etag_of
from clew.viewer.volume import Volume, display_path, rename_new, translate_errors

_PREFIX = ".clew-upload-"
_KEPT = 7 * 24 * 3600
"""Seconds after which an unfinished upload is removed."""


class PreconditionFailed(Exists):
    """The existing file is not the one that the client expects."""

    code = "overtaken"
    http_status = 412


def is_unfinished(name: str) -> bool:
    return name.startswith(_PREFIX)


class Upload:
    """One upload, locked for one client."""

    def __init__(
        self, path: bytes, directory: int, name: bytes, draft: bytes, descriptor: int
    ) -> None:
        self._path = path
        self._directory = directory
        self._name = name
        self._draft = draft
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        with translate_errors(self._path):
            while left:
                written = os.pwrite(self._descriptor, left, self.size)
                self.size += written
                left = left[written:]

    def finish(self, *, expected: str | None, new: bool) -> tuple[str, bool]:
        """Rename the draft; returns its etag, and whether the file is new. `expected`: the etag of
        the file that may be replaced; `new`: nothing may be replaced."""
        with translate_errors(self._path):
            os.fsync(self._descriptor)
            before = self.check(expected=expected, new=new)
            if before is None:
                rename_new(self._directory, self._draft, self._directory, self._name)
            else:
                os.fchmod(self._descriptor, stat.S_IMODE(before.st_mode))
                os.rename(
                    self._draft, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory
                )
            _sync(self._directory)
            return etag_of(os.fstat(self._descriptor)), before is None

    def check(self, *, expected: str | None, new: bool) -> os.stat_result | None:
        """The status of the existing file, if it may be replaced."""
        try:
            found = os.lstat(self._name, dir_fd=self._directory)
        except FileNotFoundError:
            if expected is not None:
                raise PreconditionFailed(
                    f"{display_path(self._path)} is not there any more"
                ) from None
            return None
        if new:
            raise PreconditionFailed(f"there is a {display_path(self._path)} already")
        if not stat.S_ISREG(found.st_mode):
            raise NotAllowed(f"{display_path(self._path)} is not a file and cannot be replaced")
        if expected is not None and etag_of(found) != expected:
            raise PreconditionFailed(f"{display_path(self._path)} was changed meanwhile")
        return found

    def drop(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._draft, dir_fd=self._directory)


@contextmanager
def open_upload(volume: Volume, path: bytes, key: str) -> Iterator[Upload]:
    """Start or resume the upload with this key to this path."""
    with volume.parent(path) as (directory, name):
        draft = _draft(name, key)
        _sweep(directory)
        with translate_errors(path):
            descriptor = _open_locked(directory, draft, path)
        try:
            yield Upload(path, directory, name, draft, descriptor)
        finally:
            os.close(descriptor)


def count_received(volume: Volume, path: bytes, key: str) -> int:
    """The bytes of an upload that were received."""
    with volume.parent(path) as (directory, name):
        try:
            return os.lstat(_draft(name, key), dir_fd=directory).st_size
        except FileNotFoundError:
            return 0


def discard(volume: Volume, path: bytes, key: str) -> None:
    """Cancel an upload."""
    with open_upload(volume, path, key) as upload:
        upload.drop()


def _draft(name: bytes, key: str) -> bytes:
    digest = hashlib.sha256(name + b"\0" + key.encode()).hexdigest()
    return f"{_PREFIX}{digest[:32]}".encode()


def _open_locked(directory: int, draft: bytes, path: bytes) -> int:
    """Open and lock the draft. A previous holder may have renamed it before we got the lock; then
    the descriptor is the published file, so try again."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        descriptor = os.open(draft, flags, 0o666, dir_fd=directory)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            now = os.lstat(draft, dir_fd=directory)
            if os.path.samestat(now, os.fstat(descriptor)):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise Busy(
                f"{display_path(path)} is already being uploaded", hint="try again"
            ) from None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _sweep(directory: int) -> None:
    """Remove uploads that were abandoned."""
    before = time.time() - _KEPT
    with suppress(OSError):
        opened = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        try:
            for entry in os.scandir(opened):
                if (
                    is_unfinished(entry.name)
                    and entry.stat(follow_symlinks=False).st_mtime < before
                ):
                    os.unlink(entry.name, dir_fd=opened)
        finally:
            os.close(opened)


def _sync(directory: int) -> None:
    """Make the name as durable as the bytes."""
    opened = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems do not support it
            raise
    finally:
        os.close(opened)
