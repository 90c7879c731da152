"""Download: fetch, verify and store the chunks that are missing here.

Each chunk is hashed before it is stored, each content as a whole before it gets its name. Chunks
are flushed as they come, so that a pull that is cut short goes on where it was; until their
content is whole, nothing names them, and a sweep may take them once the puller is gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import blake3

from clew.errors import Damaged
from clew.store.content_reader import Reader, hash_zeros
from clew.store.content_writer import Writer
from clew.store.index import Index
from clew.store.index import Place as Where
from clew.store.packs import pack_format
from clew.store.remotes.object_storage import REPAIR, spoilt
from clew.store.remotes.remote_index import Remote
from clew.store.remotes.upload import Progress
from clew.store.types import named

_AHEAD = 3
"""Packs that are being fetched at once."""

_Parts = list[tuple[bytes, int]]


class _Fetch(NamedTuple):
    """What is wanted of one block."""

    where: Where
    chunks: list[tuple[bytes, int, int]]
    """(digest, start, length)"""


def plan(index: Index, chunks: Iterable[bytes]) -> dict[str, list[_Fetch]]:
    """Which blocks of which packs hold these chunks, in the order they lie there."""
    blocks: dict[int, _Fetch] = {}
    for digest in chunks:
        where = index.place(digest)
        assert where is not None
        fetch = blocks.setdefault(where.block, _Fetch(where, []))
        fetch.chunks.append((digest, where.start, where.size))
    packs_: dict[str, list[_Fetch]] = {}
    for number in sorted(blocks):
        packs_.setdefault(blocks[number].where.pack, []).append(blocks[number])
    return packs_


class Receiving:
    """What a remote holds, on its way here."""

    def __init__(self, remote: Remote, writer: Writer, reader: Reader, progress: Progress) -> None:
        self._remote = remote
        self._writer = writer
        self._reader = reader
        self._progress = progress
        self.bytes = 0
        """What was fetched of packs."""

    def read(self, content: bytes, *, most: int) -> bytes:
        """A content that is not to be stored, verified. Damaged if it has more than `most` bytes:
        a remote may be anybody's."""
        parts = self._parts(content)
        if sum(length for _, length in parts) > most:
            raise self._damage(f"{named(content)} has more than {most} bytes")
        wanted = {part for part, _ in parts if part != pack_format.HOLE}
        self._must_be_there(wanted)
        found = {digest: data for pack in self._fetched(wanted) for digest, data in pack}
        whole = b"".join(bytes(n) if part == pack_format.HOLE else found[part] for part, n in parts)
        if blake3.blake3(whole).digest() != content:
            raise self._damage(f"{named(content)} does not have that digest")
        return whole

    def receive(self, contents: Iterable[bytes]) -> None:
        """Store the contents that are not here."""
        wanted = list(contents)
        self._writer.hold(wanted)
        absent = {digest for digest in wanted if self._writer.held.get(digest) is not True}
        parts = {digest: self._parts(digest) for digest in absent}
        pack_format.check_repeated(parts.values())
        chunks = {part for found in parts.values() for part, _ in found if part != pack_format.HOLE}
        self._writer.hold(list(chunks))
        missing = chunks - self._writer.held.keys()
        self._must_be_there(missing)
        alone = {d for d in absent & missing if self._remote.index.file(d) is None}
        self._store(missing, alone)
        for digest in sorted(absent - alone):
            self._name(digest, parts[digest])
        self._writer.flush()

    def _store(self, missing: set[bytes], alone: set[bytes]) -> None:
        where = (self._remote.index.place(digest) for digest in missing)
        done, total = 0, sum(place.size for place in where if place is not None)
        self._progress(done, total)
        for pack in self._fetched(missing):
            for digest, data in pack:
                self._writer.add_chunk(digest, data, whole=digest in alone)
                done += len(data)
            self._writer.flush()  # a pack at a time: what has arrived is not fetched again
            self._progress(done, total)

    def _name(self, digest: bytes, parts: _Parts) -> None:
        """A content whose chunks are all stored."""
        whole, size = blake3.blake3(), 0
        for part, length in parts:
            if part == pack_format.HOLE:
                hash_zeros(whole, length)
            else:
                data = self._reader.chunk(part)
                if len(data) != length:
                    raise self._damage(f"{named(part)} does not have that length")
                whole.update(data)
            size += length
        if whole.digest() != digest:
            raise self._damage(f"{named(digest)} does not have that digest")
        record = self._remote.index.file(digest)
        kind = pack_format.FILE if record is None else record[1]
        self._writer.add_file(pack_format.File(digest, size, kind, pack_format.pack_parts(parts)))

    def _parts(self, digest: bytes) -> _Parts:
        """A content of the remote as chunks and holes."""
        record = self._remote.index.file(digest)
        if record is not None:
            return pack_format.parts_of(record[2])
        where = self._remote.index.place(digest)
        if where is None:
            raise self._damage(f"{named(digest)} is missing")
        return [(digest, where.size)]

    def _must_be_there(self, chunks: Iterable[bytes]) -> None:
        for digest in chunks:
            if self._remote.index.place(digest) is None:
                raise self._damage(f"the chunk {named(digest)} is missing")

    def _fetched(self, chunks: Iterable[bytes]) -> Iterator[list[tuple[bytes, bytes]]]:
        """Chunks, verified, those of one pack at a time; the next packs are on their way."""
        waiting = deque(plan(self._remote.index, chunks).items())
        coming: deque[tuple[int, Future[list[tuple[bytes, bytes]]]]] = deque()
        with ThreadPoolExecutor(_AHEAD, thread_name_prefix="clew-receive") as pool:
            try:
                while waiting or coming:
                    while waiting and len(coming) < _AHEAD:
                        pack, fetches = waiting.popleft()
                        size = sum(fetch.where.stored for fetch in fetches)
                        coming.append((size, pool.submit(self._fetch, pack, fetches)))
                    size, future = coming.popleft()
                    found = future.result()
                    self.bytes += size
                    yield found
            finally:
                for _, future in coming:
                    future.cancel()

    def _fetch(self, pack: str, fetches: list[_Fetch]) -> list[tuple[bytes, bytes]]:
        ranges = [(fetch.where.position, fetch.where.stored) for fetch in fetches]
        blocks: list[bytes] = self._remote.place.get_ranges(f"packs/{pack}.pack", ranges)
        found: list[tuple[bytes, bytes]] = []
        for data, fetch in zip(blocks, fetches, strict=True):
            length, codec = fetch.where.length, fetch.where.codec
            try:
                block = pack_format.expand(data, length=length, codec=codec, where=pack)
            except Damaged as error:
                raise self._spoilt(pack) from error
            for digest, start, size in fetch.chunks:
                chunk = block[start : start + size]
                if blake3.blake3(chunk).digest() != digest:
                    raise self._spoilt(pack)
                found.append((digest, chunk))
        return found

    def _spoilt(self, pack: str) -> Damaged:
        return spoilt(self._remote.url, f"packs/{pack}.pack")

    def _damage(self, what: str) -> Damaged:
        tables = "".join(f"; tables/{name} is damaged" for name in self._remote.damaged[:1])
        return Damaged(f"the remote {self._remote.url} is damaged: {what}{tables}", hint=REPAIR)
