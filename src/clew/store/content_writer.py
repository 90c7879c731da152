"""Write content: hash it, look it up, and pack what is not stored yet.

Holds the lease and the open packs of one open store. After a failed write it accepts nothing more,
because content that was not flushed may be lost; what was flushed is complete.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import blake3

from clew.errors import ClewError
from clew.store.content_reader import hash_zeros
from clew.store.errors import from_os
from clew.store.index import Index
from clew.store.leases import Lease, StoreLock
from clew.store.packs import chunking, pack_format
from clew.store.packs.pack_writer import OpenBlock, OpenPack, PackWriter
from clew.store.types import Signature, Stored, format_digest

if TYPE_CHECKING:
    from concurrent.futures import Future

_Shares = list[tuple[OpenBlock, int]]
_Parts = list[tuple[bytes, int]]


class ContentWriter:
    """The writing half of one open store."""

    def __init__(
        self,
        path: Path,
        *,
        index: Index,
        store_lock: StoreLock,
        lease: str,
        refused: ClewError | None,
    ) -> None:
        self._path = path
        self._index = index
        self._store_lock = store_lock
        self._lease_name = lease
        self._lease: Lease | None = None
        self._refused = refused
        self._packer: PackWriter | None = None
        self._broken: ClewError | None = None
        self._new_signatures: list[tuple[Signature, bytes]] = []
        self.held: dict[bytes, bool] = {}
        """Digests in this lease that are stored or being stored; True: a whole content."""
        self.added = 0
        self.holes = 0
        """Bytes of holes that were hashed since the last flush."""

    @property
    def broken(self) -> bool:
        """Whether a write has failed: nothing more can be put."""
        return self._broken is not None

    # -- data

    def put_data(self, data: bytes) -> Stored:
        """Store content that is in memory."""
        return self.put_all([data])[0]

    def put_all(self, contents: list[bytes]) -> list[Stored]:
        """Store several contents; one query for all is what makes small ones cheap."""
        digests = [blake3.blake3(data).digest() for data in contents]
        self.hold(digests)
        stored: list[Stored] = []
        for digest, data in zip(digests, contents, strict=True):
            shares: _Shares = []
            if self.held.get(digest) is not True:  # the same content may come twice
                self._put_new(digest, data, shares)
            stored.append(Stored(format_digest(digest), len(data), shares))
        return stored

    def _put_new(self, digest: bytes, data: bytes, shares: _Shares) -> None:
        parts: _Parts = [(digest, len(data))]
        if digest not in self.held:
            ends = chunking.find_cuts(data)
            if len(ends) == 1:
                shares.append((self.add_chunk(digest, data, whole=True), len(data)))
                return
            parts = []  # none for the empty content: a record without parts
            chunks = chunking.slice_chunks(memoryview(data), ends)
            self._put_chunks(chunks, _digests(chunks), parts, shares)
        elif self._index.file(digest) is not None:
            return
        self.add_file(_file_record(digest, len(data), parts))

    def put_stream(self, chunks: Iterable[bytes]) -> Stored:
        """Store content that comes in pieces of any size."""
        buffers = _join_pieces(chunks)
        first = next(buffers, b"")
        if len(first) < chunking.READ_SIZE:  # the only one
            return self.put_data(first)
        return self.put_buffers(_chain(first, buffers))

    def put_buffers(
        self, buffers: Iterable[bytes | int], *, check: Callable[[], None] = lambda: None
    ) -> Stored:
        """Store content of any length; an integer is a hole. `check` may refuse it at the end.

        While one buffer is being cut here, the one before is being hashed, and those before that
        are being compressed, on other threads.
        """
        hasher = blake3.blake3()
        hashed: Future[object] | None = None
        pending: deque[tuple[list[memoryview], Future[list[bytes]]]] = deque()
        parts: _Parts = []
        shares: _Shares = []

        def store_hashed(waiting: int) -> None:
            """Store buffers until only `waiting` are left."""
            while len(pending) > waiting:
                chunks, digests = pending.popleft()
                self._put_chunks(chunks, digests.result(), parts, shares)

        submit = self._ready().submit
        for item in chunking.cut_buffers(buffers):
            if hashed is not None:
                hashed.result()
            if isinstance(item, int):
                store_hashed(0)
                hashed = submit(hash_zeros, hasher, item)
                parts.append((pack_format.HOLE, item))
                continue
            hashed = submit(_update, hasher, item)
            pending.append((item, submit(_digests, item)))
            store_hashed(1)
        store_hashed(0)
        if hashed is not None:
            hashed.result()
        check()
        digest, size = hasher.digest(), sum(length for _, length in parts)
        self.hold([digest])
        if self.held.get(digest) is not True:
            self.add_file(_file_record(digest, size, parts))
        return Stored(format_digest(digest), size, shares)

    def _put_chunks(
        self, chunks: list[memoryview], digests: list[bytes], parts: _Parts, shares: _Shares
    ) -> None:
        self.hold(digests)
        for chunk, digest in zip(chunks, digests, strict=True):
            if digest not in self.held:
                shares.append((self.add_chunk(digest, chunk, whole=False), len(chunk)))
            parts.append((digest, len(chunk)))

    # -- keeping

    def recall(self, signatures: list[Signature]) -> list[tuple[bytes, bool] | None]:
        """The remembered digest of each, and whether it is stored (and now held)."""
        if self._refused is not None:
            return self._index.remembered(signatures)
        self._ready()
        assert self._lease is not None
        with self._guarded(), self._store_lock.shared():
            found = self._index.remembered(signatures)
            new = {row[0] for row in found if row and row[1] and self.held.get(row[0]) is not True}
            self._lease.hold(b"".join(new))
        self.held.update(dict.fromkeys(new, True))
        return found

    def remember(self, signature: Signature, digest: bytes) -> None:
        """Remember the digest of a file with this signature; `flush` writes it to the index."""
        if self._refused is None:
            self._new_signatures.append((signature, digest))

    def hold(self, digests: list[bytes]) -> None:
        """Protect these from gc; those that are stored already are added to `held`."""
        new = [digest for digest in digests if self.held.get(digest) is not True]
        if not new:
            return
        self._ready()
        assert self._lease is not None
        with self._guarded(), self._store_lock.shared():
            self._lease.hold(b"".join(new))
            for digest, whole in self._index.known(new):
                self.held[digest] = whole or self.held.get(digest, False)

    def flush(self) -> None:
        if self._broken is not None:
            raise self._broken
        self.holes = 0
        with self._guarded():
            if self._packer is not None:
                self._packer.finish()
            if self._new_signatures:
                with self._index.writing() as db:
                    self._index.remember(db, self._new_signatures)
                self._new_signatures.clear()

    def close(self) -> None:
        try:
            if self._broken is None:
                self.flush()
        finally:
            if self._packer is not None:
                self._packer.abandon()
                self._packer = None
            if self._lease is not None:
                self._lease.release(self._store_lock)
                self._lease = None

    def _ready(self) -> PackWriter:
        if self._broken is not None:
            raise self._broken
        if self._packer is None:
            if self._refused is not None:
                raise self._refused
            with self._guarded():
                if self._lease is None:
                    self._lease = Lease(self._path / "leases", self._lease_name)
                threads = max(1, min(4, len(os.sched_getaffinity(0))))
                self._packer = PackWriter(self._path / "packs", self._publish, threads=threads)
        assert self._packer is not None
        return self._packer

    def add_chunk(self, digest: bytes, data: bytes | memoryview, *, whole: bool) -> OpenBlock:
        packer = self._ready()
        try:
            block = packer.add(digest, data, whole=whole)
        except (OSError, ClewError) as error:
            raise self._break(error) from error
        except BaseException as error:
            self._break(error)
            raise
        self.held[digest] = whole
        return block

    def add_file(self, file: pack_format.FileRecord) -> None:
        self._ready().add_file(file)
        self.held[file.digest] = True

    def _publish(self, pack: OpenPack) -> None:
        with self._store_lock.shared():
            name = pack.publish()
            with self._index.writing() as db:
                self._index.add_pack(db, name, pack.size, pack.table)
        self.added += pack.size

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ClewError) as error:
            raise self._break(error) from error
        except BaseException as error:  # interrupted, perhaps in the middle of a write
            self._break(error)
            raise

    def _break(self, error: BaseException) -> ClewError:
        """Stop writing; returns the error that this and every later call raises."""
        if isinstance(error, ClewError):
            self._broken = error
        elif isinstance(error, OSError):
            self._broken = from_os(error, doing=f"write to {self._path}")
        else:
            self._broken = ClewError(f"writing to {self._path} was interrupted")
        if self._packer is not None:
            self._packer.abandon()
            self._packer = None
        self.held.clear()
        self._new_signatures.clear()
        return self._broken


def _file_record(digest: bytes, size: int, parts: _Parts) -> pack_format.FileRecord:
    return pack_format.FileRecord(digest, size, pack_format.FILE, pack_format.pack_parts(parts))


def _digests(chunks: list[memoryview]) -> list[bytes]:
    return [blake3.blake3(chunk).digest() for chunk in chunks]


def _update(hasher: blake3.blake3, chunks: list[memoryview]) -> None:
    for chunk in chunks:
        hasher.update(chunk)


def _join_pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Join pieces to buffers of at least READ_SIZE, except the last one."""
    waiting: list[bytes] = []
    size = 0
    for chunk in chunks:
        waiting.append(chunk)
        size += len(chunk)
        if size >= chunking.READ_SIZE:
            yield b"".join(waiting)
            waiting, size = [], 0
    if size:
        yield b"".join(waiting)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
