"""A file that is sent here: it is written beside its place, and put there when it is whole.

So nobody ever sees half a file, and what is replaced is there until the new one is. A file may come
in several parts, each after the one before (`Content-Range`); what has come of it stays when the
sender goes, and can be gone on with: by whoever knows the upload's key, which the sender makes up.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from clew.errors import Busy, Exists, NotAllowed
from clew.viewer import linux_calls
from clew.viewer.byte_ranges import etag_of
from clew.viewer.volume import Volume, display_path, translate_errors

_PREFIX = ".clew-upload-"
_KEPT = 7 * 24 * 3600
"""Seconds after which nobody goes on with what was begun."""


class PreconditionFailed(Exists):
    """What is there is not what the sender thinks is."""

    code = "overtaken"
    http_status = 412


def is_unfinished(name: str) -> bool:
    return name.startswith(_PREFIX)


class Upload:
    """One file on its way, held open and for one sender alone."""

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
        """Put it in its place; the answer: its etag, and whether nothing was there before.
        `expected`: the etag of what may be replaced; `new`: nothing may be."""
        with translate_errors(self._path):
            os.fsync(self._descriptor)
            before = self.check(expected=expected, new=new)
            if before is None:
                linux_calls.rename_new(self._directory, self._draft, self._directory, self._name)
            else:
                os.fchmod(self._descriptor, stat.S_IMODE(before.st_mode))
                os.rename(
                    self._draft, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory
                )
            _sync(self._directory)
            return etag_of(os.fstat(self._descriptor)), before is None

    def check(self, *, expected: str | None, new: bool) -> os.stat_result | None:
        """What is in its place now, if it may be replaced."""
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
            raise NotAllowed(f"{display_path(self._path)} is no file, and is not replaced by one")
        if expected is not None and etag_of(found) != expected:
            raise PreconditionFailed(f"{display_path(self._path)} was changed meanwhile")
        return found

    def drop(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._draft, dir_fd=self._directory)


@contextmanager
def open_upload(volume: Volume, path: bytes, key: str) -> Iterator[Upload]:
    """The upload of this key to this place, begun or gone on with."""
    with volume.place(path) as (directory, name):
        draft = _draft(name, key)
        _sweep(directory)
        with translate_errors(path):
            descriptor = _held(directory, draft, path)
        try:
            yield Upload(path, directory, name, draft, descriptor)
        finally:
            os.close(descriptor)


def count_received(volume: Volume, path: bytes, key: str) -> int:
    """How many bytes of an upload are here."""
    with volume.place(path) as (directory, name):
        try:
            return os.lstat(_draft(name, key), dir_fd=directory).st_size
        except FileNotFoundError:
            return 0


def discard(volume: Volume, path: bytes, key: str) -> None:
    """Nobody will go on with it."""
    with open_upload(volume, path, key) as found:
        found.drop()


def _draft(name: bytes, key: str) -> bytes:
    digest = hashlib.sha256(name + b"\0" + key.encode()).hexdigest()
    return f"{_PREFIX}{digest[:32]}".encode()


def _held(directory: int, draft: bytes, path: bytes) -> int:
    """Open and locked. Who had it before may have put it in its place while we waited for it:
    then what we hold is that file, and not ours."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        found = os.open(draft, flags, 0o666, dir_fd=directory)
        try:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
            now = os.lstat(draft, dir_fd=directory)
            if os.path.samestat(now, os.fstat(found)):
                return found
        except BlockingIOError:
            os.close(found)
            raise Busy(f"somebody sends {display_path(path)} already", hint="try again") from None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(found)
            raise
        os.close(found)


def _sweep(directory: int) -> None:
    """What somebody began here long ago, and left."""
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
    """The name is as durable as the bytes."""
    opened = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems have no such thing
            raise
    finally:
        os.close(opened)
