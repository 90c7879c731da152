"""Putting content in: hash, ask whether it is here, pack what is not.

A file is believed to be what it says only if its signature is the same before and after reading.
Its digest is remembered by that signature, unless the file changed so recently that one more
change might carry the same times; then it is hashed again the next time.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import blake3

from clew.errors import ClewError, NotAllowed
from clew.store import cutting, packs
from clew.store.errors import Changed, from_os, shown
from clew.store.index import Index
from clew.store.leases import Gate, Lease
from clew.store.packing import OpenBlock, OpenPack, Packer
from clew.store.reading import hash_zeros
from clew.store.records import Signature, Stored, named

if TYPE_CHECKING:
    from concurrent.futures import Future

SMALL = 4 << 20
"""Up to this size content is taken in one go; beyond it, it flows through threads."""
RACY = 2_000_000_000
"""ns; coarser than any file system's clock."""

_Shares = list[tuple[OpenBlock, int]]
_Parts = list[tuple[bytes, int]]


class Writer:
    """The writing half of one open store."""

    def __init__(self, path: Path, *, index: Index, gate: Gate, lease: str, writable: bool) -> None:
        self._path = path
        self._index = index
        self._gate = gate
        self._lease_name = lease
        self._lease: Lease | None = None
        self._writable = writable
        self._packer: Packer | None = None
        self._broken: ClewError | None = None
        self._seen: list[tuple[Signature, bytes]] = []
        self.held: dict[bytes, bool] = {}
        """Digests held by our lease that are in the index or on their way; True: whole contents."""
        self.added = 0

    @property
    def broken(self) -> bool:
        """A write has failed; nothing more can be put."""
        return self._broken is not None

    # -- files

    def put_file(self, path: bytes, *, expect: Signature | None, keep: bool) -> Stored:
        try:
            signature = Signature.of(os.stat(path))
            if expect is not None and signature != expect:
                raise Changed(f"{shown(path)} is not what it was")
            known = self._index.remembered(signature)
            if known is not None and (not keep or (known[1] and self.hold([known[0]])[0] is True)):
                return Stored(named(known[0]), signature.size)
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            raise from_os(error, doing=f"read {shown(path)}") from error
        try:
            return self._put_open(fd, path, expect=expect, keep=keep)
        finally:
            os.close(fd)

    def _put_open(self, fd: int, path: bytes, *, expect: Signature | None, keep: bool) -> Stored:
        started = time.time_ns()
        status = os.fstat(fd)
        before = Signature.of(status)
        if not stat.S_ISREG(status.st_mode):
            raise ClewError(f"{shown(path)} is not a regular file")
        if expect is not None and before != expect:
            raise Changed(f"{shown(path)} is not what it was")

        def unchanged() -> None:
            if Signature.of(os.fstat(fd)) != before:
                raise Changed(f"{shown(path)} changed while it was read")

        with _reading(path):
            if before.size <= SMALL:
                data = _read_small(fd, before.size)
                if len(data) != before.size:
                    raise Changed(f"{shown(path)} does not hold as many bytes as its size says")
                unchanged()
                stored = (
                    self.put_data(data)
                    if keep
                    else Stored(named(blake3.blake3(data).digest()), before.size)
                )
            else:
                buffers = cutting.read_all(fd, status)
                stored = (self.put_buffers if keep else _hash)(
                    _exactly(buffers, before.size, path), check=unchanged
                )
        if max(before.mtime, before.ctime) + RACY < started and self._writable:
            self._seen.append((before, bytes.fromhex(stored.digest[7:])))
        return stored

    # -- data

    def put_data(self, data: bytes, *, kind: int = packs.FILE) -> Stored:
        """Content that is in memory."""
        digest = blake3.blake3(data).digest()
        known = self.hold([digest])[0]
        if known is True and kind == packs.FILE:
            return Stored(named(digest), len(data))
        shares: _Shares = []
        parts: _Parts = [(digest, len(data))]
        if known is None:
            ends = cutting.cuts(data)
            if len(ends) == 1:
                shares.append((self._add(digest, data, whole=True), len(data)))
                if kind == packs.FILE:
                    return Stored(named(digest), len(data), tuple(shares))
            else:  # none for the empty content: a record without parts
                parts = []
                chunks = cutting.slices(memoryview(data), ends)
                self._put_chunks(chunks, _digests(chunks), parts, shares)
        self._add_file(packs.File(digest, len(data), kind, packs.pack_parts(parts)))
        return Stored(named(digest), len(data), tuple(shares))

    def put_stream(self, chunks: Iterable[bytes]) -> Stored:
        """Content that comes in pieces of any size."""
        buffers = _gathered(chunks)
        first = next(buffers, b"")
        if len(first) < cutting.BUFFER:  # that was all
            return self.put_data(first)
        return self.put_buffers(_chain(first, buffers))

    def put_buffers(
        self, buffers: Iterable[bytes | int], *, check: Callable[[], None] = lambda: None
    ) -> Stored:
        """Content of any length, holes as their lengths. `check` may refuse it at the end.

        While one buffer is being cut here, the one before is being hashed, and those before that
        are being compressed, on other threads.
        """
        whole = blake3.blake3()
        hashed: Future[object] | None = None
        flowing: deque[tuple[list[memoryview], Future[list[bytes]]]] = deque()
        parts: _Parts = []
        shares: _Shares = []

        def settle(most: int) -> None:
            while len(flowing) > most:
                chunks, digests = flowing.popleft()
                self._put_chunks(chunks, digests.result(), parts, shares)

        submit = self._ready().submit
        for item in cutting.pieces(buffers):
            if hashed is not None:
                hashed.result()
            if isinstance(item, int):
                settle(0)
                hashed = submit(hash_zeros, whole, item)
                parts.append((packs.HOLE, item))
                continue
            hashed = submit(_update, whole, item)
            flowing.append((item, submit(_digests, item)))
            settle(1)
        settle(0)
        if hashed is not None:
            hashed.result()
        check()
        digest, size = whole.digest(), sum(length for _, length in parts)
        if self.hold([digest])[0] is not True:
            self._add_file(packs.File(digest, size, packs.FILE, packs.pack_parts(parts)))
        return Stored(named(digest), size, tuple(shares))

    def _put_chunks(
        self, chunks: list[memoryview], digests: list[bytes], parts: _Parts, shares: _Shares
    ) -> None:
        known = self.hold(digests)
        for chunk, digest, here in zip(chunks, digests, known, strict=True):
            if here is None and digest not in self.held:  # twice in one batch is once
                shares.append((self._add(digest, chunk, whole=False), len(chunk)))
            parts.append((digest, len(chunk)))

    # -- keeping

    def hold(self, digests: list[bytes]) -> list[bool | None]:
        """What is known of each (as Index.known says); from now on the sweep lets it be."""
        found = [self.held.get(digest) for digest in digests]
        asked = [i for i, known in enumerate(found) if known is not True]
        if not asked:
            return found
        self._ready()
        assert self._lease is not None
        with self._guarded():
            self._gate.enter()
            try:
                self._lease.hold(b"".join([digests[i] for i in asked]))
                for i in asked:
                    known = self._index.known(digests[i])
                    if known is not None:
                        self.held[digests[i]] = found[i] = known
            finally:
                self._gate.leave()
        return found

    def flush(self) -> None:
        if self._broken is not None:
            raise self._broken
        with self._guarded():
            if self._packer is not None:
                self._packer.finish()
            if self._seen:
                with self._index.writing() as db:
                    self._index.remember(db, self._seen)
                self._seen.clear()

    def close(self) -> None:
        try:
            if self._broken is None:
                self.flush()
        finally:
            if self._packer is not None:
                self._packer.abandon()
                self._packer = None
            if self._lease is not None:
                self._lease.release(self._gate)
                self._lease = None

    def _ready(self) -> Packer:
        if self._broken is not None:
            raise self._broken
        if self._packer is None:
            if not self._writable:
                raise NotAllowed(
                    f"{self._path} cannot be written", hint="check the permissions of the project"
                )
            with self._guarded():
                if self._lease is None:
                    self._lease = Lease(self._path / "leases", self._lease_name)
                threads = max(1, min(4, len(os.sched_getaffinity(0))))
                self._packer = Packer(self._path / "packs", self._named, threads=threads)
        assert self._packer is not None
        return self._packer

    def _add(self, digest: bytes, data: bytes | memoryview, *, whole: bool) -> OpenBlock:
        packer = self._ready()
        with self._guarded():
            block = packer.add(digest, data, whole=whole)
        self.held[digest] = whole
        return block

    def _add_file(self, file: packs.File) -> None:
        self._ready().add_file(file)
        self.held[file.digest] = True

    def _named(self, pack: OpenPack) -> None:
        with self._gate.shared():
            name = pack.publish()
            with self._index.writing() as db:
                self._index.add_pack(db, name, pack.size, pack.table)
        self.added += pack.size

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """A write that fails ends all writing through this store: what waited may be lost."""
        try:
            yield
        except (OSError, ClewError) as error:
            self._broken = (
                from_os(error, doing=f"write to {self._path}")
                if isinstance(error, OSError)
                else error
            )
            if self._packer is not None:
                self._packer.abandon()
                self._packer = None
            self.held.clear()
            self._seen.clear()
            raise self._broken from error


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
    left = size
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


def _digests(chunks: list[memoryview]) -> list[bytes]:
    return [blake3.blake3(chunk).digest() for chunk in chunks]


def _update(whole: blake3.blake3, chunks: list[memoryview]) -> None:
    for chunk in chunks:
        whole.update(chunk)


def _gathered(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Buffers of at least the reading size, the last one excepted."""
    waiting: list[bytes] = []
    size = 0
    for chunk in chunks:
        waiting.append(chunk)
        size += len(chunk)
        if size >= cutting.BUFFER:
            yield b"".join(waiting)
            waiting, size = [], 0
    if size:
        yield b"".join(waiting)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
