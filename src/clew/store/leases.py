"""The store lock between writers and gc, and the leases that protect content of running work.

The store lock is a file lock. A writer holds it shared while it adds digests to its lease and looks
them up in the index; gc holds it exclusively while it reads the leases and drops unused content. So
a content is either found *and* held, or gone.

A lease is a file of digests that is locked while its holder lives. The kernel releases the lock
when the holder dies, and the lease lapses. The lapsed lease of an execution stays until recovery
has completed its record; an anonymous one is removed with the next release. gc removes all lapsed
leases.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DIGEST = 32
ANONYMOUS = "anonymous"
SWEEPING = ".sweeping"
"""Exists among the leases during a sweep, or after one that was killed."""


class StoreLock:
    """A file lock, shared or exclusive. Shared locks nest within a process."""

    def __init__(self, path: Path) -> None:
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            self._fd = os.open(path, os.O_RDONLY)  # a read-only store can still be locked
        self._depth = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        if self._depth == 0:
            fcntl.flock(self._fd, fcntl.LOCK_SH)
        self._depth += 1

    def leave(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        assert self._depth == 0
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        self._depth = 1
        try:
            yield
        finally:
            self.leave()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def create_locked(directory: Path, name: str) -> tuple[int, Path]:
    """Create a file that is locked by this process. An unlocked one is abandoned."""
    while True:
        path = directory / name.replace("*", os.urandom(8).hex())
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd, path
        os.close(fd)  # gc removed it before it was locked


def is_abandoned(path: Path) -> bool:
    """Whether the creator of a `create_locked` file is dead; False if the file is gone."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


class Lease:
    """The lease of this process."""

    def __init__(self, directory: Path, name: str) -> None:
        safe = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[:100] or ANONYMOUS
        self._fd, self._path = create_locked(directory, f"{safe}.*")

    def hold(self, digests: bytes) -> None:
        """Add digests; requires the store lock. Not synced: a lease ends with its holder."""
        remaining = memoryview(digests)
        while remaining:
            remaining = remaining[os.write(self._fd, remaining) :]

    def release(self, store_lock: StoreLock) -> None:
        """End the lease: the graph names the content by now, or it is not needed.

        A running sweep may have listed the live content before, so it must still see the file; the
        next sweep removes it.
        """
        if self._fd < 0:
            return
        with store_lock.shared():
            if not (self._path.parent / SWEEPING).exists():
                self._path.unlink(missing_ok=True)
        os.close(self._fd)
        self._fd = -1
        remove_lapsed(self._path.parent, ANONYMOUS, store_lock)


def begin_sweep(directory: Path) -> None:
    """Remove lapsed leases and keep those that end from now on; requires the exclusive lock."""
    (directory / SWEEPING).touch()
    for path in _leases(directory):
        if is_abandoned(path):
            path.unlink(missing_ok=True)


def end_sweep(directory: Path) -> None:
    (directory / SWEEPING).unlink(missing_ok=True)


def remove_lapsed(directory: Path, name: str, store_lock: StoreLock) -> None:
    """Remove the leases of dead holders of this name, unless a sweep is running, which may still
    need them (see `Lease.release`)."""
    with store_lock.shared():
        if (directory / SWEEPING).exists():
            return
        for path in directory.glob(f"{name}.*"):
            if is_abandoned(path):
                path.unlink(missing_ok=True)


def read_held_digests(directory: Path) -> set[bytes]:
    """All digests in leases, also of those released since the sweep began; requires the
    exclusive lock."""
    digests: set[bytes] = set()
    for path in _leases(directory):
        data = path.read_bytes()
        digests.update(data[i : i + DIGEST] for i in range(0, len(data), DIGEST))
    return digests


def _leases(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if not path.name.startswith(".")]
