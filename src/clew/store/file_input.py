"""Files on their way in: which to believe, how to read them.

A file is what it says only if its signature is the same before and after reading. Its digest is
remembered by that signature, unless the file changed so recently that one more change might
carry the same times; then it is hashed again the next time.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import blake3

from clew.confined_files import HOST, Confined
from clew.errors import ClewError
from clew.store.content_reader import hash_zeros
from clew.store.content_writer import Writer
from clew.store.errors import Changed, TooSparse, from_os, shown
from clew.store.packs import chunking, pack_format
from clew.store.types import Signature, Stored, digest_of, named

SMALL = 4 << 20
"""Up to this size a file is read in one go; beyond it, it flows through threads."""
RACY = 2_000_000_000
"""ns; coarser than any file system's clock."""
BATCH = 256
"""Files that are looked up together."""


def put(
    writer: Writer,
    paths: Sequence[bytes],
    expect: Sequence[Signature | None],
    *,
    keep: bool,
    anew: bool = False,
    within: Confined = HOST,
) -> Iterator[Stored | ClewError]:
    """What became of each file, in their order. A broken store raises."""
    for i in range(0, len(paths), BATCH):
        batch = paths[i : i + BATCH], expect[i : i + BATCH]
        yield from _Batch(writer, *batch, keep=keep, anew=anew, within=within).run()


def recall(writer: Writer, signatures: Sequence[Signature]) -> Iterator[Stored | None]:
    """The contents of files that had exactly these signatures when they were stored."""
    for i in range(0, len(signatures), BATCH):
        batch = list(signatures[i : i + BATCH])
        for signature, row in zip(batch, writer.recall(batch), strict=True):
            yield Stored(named(row[0]), signature.size) if row and row[1] else None


class _Batch:
    def __init__(
        self,
        writer: Writer,
        paths: Sequence[bytes],
        expect: Sequence[Signature | None],
        *,
        keep: bool,
        anew: bool,
        within: Confined,
    ) -> None:
        self._writer = writer
        self._anew = anew
        self._within = within
        self._paths = paths
        self._expect = expect
        self._keep = keep
        self._done: dict[int, Stored | ClewError] = {}
        self._waiting: list[tuple[int, bytes, Signature, int]] = []  # small files that were read
        self._weight = 0

    def run(self) -> Iterator[Stored | ClewError]:
        for i in range(len(self._paths)) if self._anew else self._unknown():
            self._read(i)
        self._settle()
        return (self._done[i] for i in range(len(self._paths)))

    def _unknown(self) -> list[int]:
        """The files that must be read: of the others it is known by their signatures what is in."""
        signatures: dict[int, Signature] = {}
        for i, path in enumerate(self._paths):
            try:
                signature = Signature.of(self._within.stat(path))
            except OSError as error:
                self._done[i] = from_os(error, doing=f"read {shown(path)}")
                continue
            if self._expect[i] is None or self._expect[i] == signature:
                signatures[i] = signature
            else:
                self._done[i] = Changed(f"{shown(path)} is not what it was")
        unknown: list[int] = []
        known = self._writer.recall(list(signatures.values()))
        for (i, signature), row in zip(signatures.items(), known, strict=True):
            if row is not None and (row[1] or not self._keep):
                self._done[i] = Stored(named(row[0]), signature.size)
            else:
                unknown.append(i)
        return unknown

    def _read(self, i: int) -> None:
        path = self._paths[i]
        try:
            fd = self._within.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            self._done[i] = from_os(error, doing=f"read {shown(path)}")
            return
        try:
            self._read_open(i, fd, path)
        except ClewError as error:
            if self._writer.broken:
                raise
            self._done[i] = error
        finally:
            os.close(fd)

    def _read_open(self, i: int, fd: int, path: bytes) -> None:
        started = time.time_ns()
        status = os.fstat(fd)
        before = Signature.of(status)
        if not stat.S_ISREG(status.st_mode):
            raise ClewError(f"{shown(path)} is not a regular file")
        if self._expect[i] is not None and before != self._expect[i]:
            raise Changed(f"{shown(path)} is not what it was")

        def unchanged() -> None:
            if Signature.of(os.fstat(fd)) != before:
                raise Changed(f"{shown(path)} changed while it was read")

        if before.size > SMALL:
            self._refuse_too_sparse(path, chunking.hole_bytes(fd, status))
            buffers = _exactly(chunking.read_all(fd, status), before.size, path)
            store = self._writer.put_buffers if self._keep else _hash
            self._finish(i, store(buffers, check=unchanged), before, started)
            return
        with _reading(path):
            data = _read_small(fd, before.size)
        if len(data) != before.size:
            raise Changed(f"{shown(path)} does not hold as many bytes as its size says")
        unchanged()
        self._waiting.append((i, data, before, started))
        self._weight += len(data)
        if self._weight > SMALL:
            self._settle()

    def _refuse_too_sparse(self, path: bytes, holes: int) -> None:
        """A hole costs its maker nothing, but its digest takes as long as that of data: a command
        that leaves files of terabytes would occupy its recorder for hours."""
        if self._writer.holes + holes > pack_format.MOST_REPEATED:
            raise TooSparse(
                f"{shown(path)} is sparse: at most {pack_format.MOST_REPEATED >> 30} GiB of holes"
                " are hashed, those of all files together"
            )
        self._writer.holes += holes

    def _settle(self) -> None:
        """Store the small files that were read."""
        waiting, self._waiting, self._weight = self._waiting, [], 0
        if self._keep:
            stored = self._writer.put_all([data for _, data, _, _ in waiting])
        else:
            stored = [Stored(named(blake3.blake3(w[1]).digest()), len(w[1])) for w in waiting]
        for (i, _, before, started), content in zip(waiting, stored, strict=True):
            self._finish(i, content, before, started)

    def _finish(self, i: int, stored: Stored, before: Signature, started: int) -> None:
        self._done[i] = stored
        digest = digest_of(stored.digest)
        if digest is not None and max(before.mtime, before.ctime) + RACY < started:
            self._writer.remember(before, digest)


@contextmanager
def _reading(path: bytes) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise from_os(error, doing=f"read {shown(path)}") from error


def _read_small(fd: int, size: int) -> bytes:
    """At most one byte more than `size`: enough to see that there is more than the size says."""
    data = os.read(fd, size + 1)
    while data and len(data) < size:
        more = os.read(fd, size + 1 - len(data))
        if not more:
            break
        data += more
    return data


def _exactly(buffers: Iterator[bytes | int], size: int, path: bytes) -> Iterator[bytes | int]:
    """The same, but Changed when less comes; errors are said of the file they are of."""
    left = size
    with _reading(path):
        for buffer in buffers:
            left -= buffer if isinstance(buffer, int) else len(buffer)
            yield buffer
    if left:
        raise Changed(f"{shown(path)} became shorter while it was read")


def _hash(buffers: Iterable[bytes | int], *, check: Callable[[], None]) -> Stored:
    whole, size = blake3.blake3(max_threads=blake3.blake3.AUTO), 0
    for buffer in buffers:
        if isinstance(buffer, int):
            hash_zeros(whole, buffer)
            size += buffer
        else:
            whole.update(buffer)
            size += len(buffer)
    check()
    return Stored(named(whole.digest()), size)
