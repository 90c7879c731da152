"""Who may do what at once: the gate between writers and the sweep, and the leases of running work.

The gate is a file lock. A writer passes it (shared) while it writes down in its lease what it is
about to rely on and asks the index whether that is there; the sweep closes it (exclusive) while it
reads the leases and drops what nobody needs. So a content is either found *and* held, or gone.

A lease is a file, locked as long as its holder lives, of the digests that it put or found. The
kernel lets go of the lock when the holder dies, however it dies: its lease lapses. The lapsed
lease of an execution stays until what it left is settled; one of nameless work, of which nothing
is left to settle, goes with the next that is let go. A sweep removes every lapsed one.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DIGEST = 32
ANONYMOUS = "anonymous"
SWEEPING = ".sweeping"
"""Lies among the leases while a sweep is under way (or was, when it was killed)."""


class Gate:
    """One file lock, taken shared or exclusive, within one process also nested."""

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
    def exclusive(self, *, wait: bool = True) -> Iterator[None]:
        """Alone. With wait=False: BlockingIOError when somebody is inside."""
        assert self._depth == 0
        fcntl.flock(self._fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
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
    """A new file, locked by this process. Whoever finds it unlocked may take it for abandoned."""
    while True:
        path = directory / name.replace("*", os.urandom(8).hex())
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd, path
        os.close(fd)  # swept between its making and its locking


def abandoned(path: Path) -> bool:
    """Whether the maker of a `create_locked` file is gone. A file that is gone itself is not."""
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
    """This process's own."""

    def __init__(self, directory: Path, name: str) -> None:
        safe = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[:100] or ANONYMOUS
        self._fd, self._path = create_locked(directory, f"{safe}.*")

    def hold(self, digests: bytes) -> None:
        """Write down digests, inside the gate. Not synced: a lease dies with its holder."""
        left = memoryview(digests)
        while left:
            left = left[os.write(self._fd, left) :]

    def release(self, gate: Gate) -> None:
        """Let go: by now what was held is named, or not wanted.

        A sweep under way may have asked for the names before they were given, so the file stays
        for it to read; the next sweep removes it.
        """
        if self._fd < 0:
            return
        with gate.shared():
            if not (self._path.parent / SWEEPING).exists():
                self._path.unlink(missing_ok=True)
        os.close(self._fd)
        self._fd = -1
        drop_lapsed(self._path.parent, ANONYMOUS, gate)


def begin_sweep(directory: Path) -> None:
    """Remove lapsed leases and keep those that end from now on; inside the closed gate."""
    (directory / SWEEPING).touch()
    for path in _leases(directory):
        if abandoned(path):
            path.unlink(missing_ok=True)


def end_sweep(directory: Path) -> None:
    (directory / SWEEPING).unlink(missing_ok=True)


def drop_lapsed(directory: Path, name: str, gate: Gate) -> None:
    """Remove what dead holders of this name held, once what they left is settled; a sweep under
    way may still need them, as in `Lease.release`."""
    with gate.shared():
        if (directory / SWEEPING).exists():
            return
        for path in directory.glob(f"{name}.*"):
            if abandoned(path):
                path.unlink(missing_ok=True)


def held(directory: Path) -> set[bytes]:
    """Every digest that work relies on, or did since the sweep began; inside the closed gate."""
    digests: set[bytes] = set()
    for path in _leases(directory):
        data = path.read_bytes()
        digests.update(data[i : i + DIGEST] for i in range(0, len(data), DIGEST))
    return digests


def _leases(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if not path.name.startswith(".")]
