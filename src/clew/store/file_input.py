"""Read files into the store, and skip those whose signature is known.

Bytes count only if the signature of the file is the same before and after reading. The digest is
remembered with that signature, unless the file changed so recently that another change could get
the same times; then the file is hashed again the next time.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import blake3

from clew.confined_files import HOST, Confined
from clew.errors import ClewError
from clew.store.content_reader import hash_zeros
from clew.store.content_writer import ContentWriter
from clew.store.errors import Changed, TooSparse, display_path, from_os
from clew.store.packs import chunking, pack_format
from clew.store.types import Signature, Stored, format_digest, parse_digest

SMALL_FILE = 4 << 20
"""Bytes. A smaller file is read at once; a larger one passes through threads in buffers."""
RACY_NS = 2_000_000_000
"""Nanoseconds; coarser than the clock of any file system."""
BATCH = 256
"""Files that are looked up together."""


def put_files(
    writer: ContentWriter,
    paths: Sequence[bytes],
    expect: Sequence[Signature | None],
    *,
    keep: bool,
    reread: bool = False,
    recalled: bool = False,
    within: Confined = HOST,
) -> Iterator[Stored | ClewError]:
    """The result for each file, in order. Raises if the store cannot be written any more.
    `recalled`: `recall_files` found no stored content for `expect`, so it is not looked up."""
    for i in range(0, len(paths), BATCH):
        batch = _Batch(
            writer, paths[i : i + BATCH], expect[i : i + BATCH], keep=keep, within=within
        )
        yield from batch.run(reread=reread, recalled=recalled)


def recall_files(writer: ContentWriter, signatures: Sequence[Signature]) -> Iterator[Stored | None]:
    """The contents of files that had exactly these signatures when they were stored."""
    for i in range(0, len(signatures), BATCH):
        batch = list(signatures[i : i + BATCH])
        for signature, row in zip(batch, writer.recall(batch), strict=True):
            yield Stored(format_digest(row[0]), signature.size) if row and row[1] else None


class _Batch:
    def __init__(
        self,
        writer: ContentWriter,
        paths: Sequence[bytes],
        expect: Sequence[Signature | None],
        *,
        keep: bool,
        within: Confined,
    ) -> None:
        self._writer = writer
        self._within = within
        self._paths = paths
        self._expect = expect
        self._keep = keep
        self._done: dict[int, Stored | ClewError] = {}
        self._waiting: list[tuple[int, bytes, Signature, int]] = []  # small files that were read
        self._weight = 0

    def run(self, *, reread: bool, recalled: bool) -> Iterator[Stored | ClewError]:
        to_read: Iterable[int] = range(len(self._paths))
        if not reread:
            signatures = self._expected()
            to_read = signatures if recalled else self._unknown(signatures)
        for i in to_read:
            self._read(i)
        self._settle()
        return (self._done[i] for i in range(len(self._paths)))

    def _expected(self) -> dict[int, Signature]:
        """The signatures of the files that are as expected."""
        signatures: dict[int, Signature] = {}
        for i, path in enumerate(self._paths):
            try:
                signature = Signature.of(self._within.stat(path))
            except OSError as error:
                self._done[i] = from_os(error, doing=f"read {display_path(path)}")
                continue
            if self._expect[i] is None or self._expect[i] == signature:
                signatures[i] = signature
            else:
                self._done[i] = Changed(f"{display_path(path)} changed since it was last seen")
        return signatures

    def _unknown(self, signatures: dict[int, Signature]) -> list[int]:
        """The files that must be read; the others are recognised by their signatures."""
        unknown: list[int] = []
        known = self._writer.recall(list(signatures.values()))
        for (i, signature), row in zip(signatures.items(), known, strict=True):
            if row is not None and (row[1] or not self._keep):
                self._done[i] = Stored(format_digest(row[0]), signature.size)
            else:
                unknown.append(i)
        return unknown

    def _read(self, i: int) -> None:
        path = self._paths[i]
        try:
            fd = self._within.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            self._done[i] = from_os(error, doing=f"read {display_path(path)}")
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
            raise ClewError(f"{display_path(path)} is not a regular file")
        if self._expect[i] is not None and before != self._expect[i]:
            raise Changed(f"{display_path(path)} changed since it was last seen")

        def unchanged() -> None:
            if Signature.of(os.fstat(fd)) != before:
                raise Changed(f"{display_path(path)} changed while it was read")

        if before.size > SMALL_FILE:
            self._refuse_too_sparse(path, chunking.count_hole_bytes(fd, status))
            buffers = _check_size(chunking.read_buffers(fd, status), before.size, path)
            store = self._writer.put_buffers if self._keep else _hash
            self._finish(i, store(buffers, check=unchanged), before, started)
            return
        with _reading(path):
            data = _read_small(fd, before.size)
        if len(data) != before.size:
            raise Changed(f"{display_path(path)} does not hold as many bytes as its size says")
        unchanged()
        self._waiting.append((i, data, before, started))
        self._weight += len(data)
        if self._weight > SMALL_FILE:
            self._settle()

    def _refuse_too_sparse(self, path: bytes, holes: int) -> None:
        """Limit holes: they cost nothing to make, but hashing terabytes of them takes hours."""
        if self._writer.holes + holes > pack_format.MAX_REPEATED:
            raise TooSparse(
                f"{display_path(path)} is sparse: at most {pack_format.MAX_REPEATED >> 30} GiB of"
                " holes are hashed, those of all files together"
            )
        self._writer.holes += holes

    def _settle(self) -> None:
        """Store the small files that were read."""
        waiting, self._waiting, self._weight = self._waiting, [], 0
        if self._keep:
            stored = self._writer.put_all([data for _, data, _, _ in waiting])
        else:
            stored = [
                Stored(format_digest(blake3.blake3(w[1]).digest()), len(w[1])) for w in waiting
            ]
        for (i, _, before, started), content in zip(waiting, stored, strict=True):
            self._finish(i, content, before, started)

    def _finish(self, i: int, stored: Stored, before: Signature, started: int) -> None:
        self._done[i] = stored
        digest = parse_digest(stored.digest)
        if digest is not None and max(before.mtime, before.ctime) + RACY_NS < started:
            self._writer.remember(before, digest)


@contextmanager
def _reading(path: bytes) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise from_os(error, doing=f"read {display_path(path)}") from error


def _read_small(fd: int, size: int) -> bytes:
    """Read at most one byte more than `size`, which shows that the file is longer."""
    data = os.read(fd, size + 1)
    while data and len(data) < size:
        more = os.read(fd, size + 1 - len(data))
        if not more:
            break
        data += more
    return data


def _check_size(buffers: Iterator[bytes | int], size: int, path: bytes) -> Iterator[bytes | int]:
    """The same buffers; raises Changed if they are shorter than `size`."""
    remaining = size
    with _reading(path):
        for buffer in buffers:
            remaining -= buffer if isinstance(buffer, int) else len(buffer)
            yield buffer
    if remaining:
        raise Changed(f"{display_path(path)} became shorter while it was read")


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
    return Stored(format_digest(whole.digest()), size)
