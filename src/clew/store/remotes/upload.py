"""Upload: pack the chunks that a remote lacks, and put them there.

Whoever is killed leaves whole packs that are found and kept the next time, and at most one pack of
each thread that nothing speaks of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import blake3

from clew.errors import Damaged
from clew.store.content_reader import Reader
from clew.store.index import Index
from clew.store.packs import chunking, pack_format
from clew.store.packs.pack_writer import OpenBlock, compress
from clew.store.types import named

PACK = 16 << 20
"""Content in one pack: little is lost when a push is cut short, and objects stay few."""
CHUNKS = pack_format.MOST_CHUNKS // 5
"""Chunks in one pack, and contents."""
BLOCK = 128 << 10
"""Small chunks that are compressed together; fewer than in a store, and larger chunks stay alone,
since whoever lacks one fetches its block."""

Progress = Callable[[int, int], None]
"""Told how many bytes of content have travelled, and of how many."""


class There(Protocol):
    """Whom content is sent to: a remote, or a server."""

    at_once: int
    """Packs that may be on their way at once; with 1 they arrive in the order they were made."""

    def lacking(self, chunks: Sequence[bytes]) -> set[bytes]:
        """Those of these chunks that are not there."""

    def untold(self, contents: Sequence[bytes]) -> set[bytes]:
        """Those of these contents of which it does not know what chunks they are made of."""

    def put_pack(self, pack: bytes, tail: bytes) -> int:
        """When this returns, the pack is there for good; the bytes it took. `tail`: its table."""


class Sending:
    """What is missing there, on its way."""

    def __init__(self, index: Index, reader: Reader, there: There, progress: Progress) -> None:
        self._index = index
        self._reader = reader
        self._there = there
        self._progress = progress
        self._pool = ThreadPoolExecutor(there.at_once, thread_name_prefix="clew-send")
        self._waiting: deque[tuple[int, Future[int]]] = deque()
        self._blocks: list[OpenBlock] = [OpenBlock()]
        self._open_bytes = self._open_chunks = self._open_records = 0  # in them
        self._given: set[bytes] = set()  # chunks
        self._told: set[bytes] = set()  # records
        self._done = self._total = 0
        self.bytes = 0
        """What was put there."""

    def send(self, contents: Iterable[bytes]) -> None:
        """Contents of this store, as far as they are not there."""
        wanted = list(contents)
        records = self._records(wanted)
        chunks = self._chunks(wanted)
        self._total += sum(chunks.values())
        self._progress(self._done, self._total)
        alone = {digest for digest in wanted if digest in chunks and digest not in records}
        for digest in chunks:
            self._add(digest, self._reader.chunk(digest), whole=digest in alone)
        for record in records.values():
            self._add_record(record)

    def send_bytes(self, data: bytes) -> str:
        """A content that is in no store; its name."""
        digest = blake3.blake3(data).digest()
        pieces = chunking.slices(memoryview(data), chunking.cuts(data))
        found = [(blake3.blake3(piece).digest(), piece) for piece in pieces]
        absent = self._absent([part for part, _ in found])
        single = len(found) == 1
        for part, piece in found:
            if part in absent:
                self._total += len(piece)
                self._add(part, bytes(piece), whole=single)
                absent.discard(part)
        if not single and self._there.untold([digest]):
            parts = pack_format.pack_parts((part, len(piece)) for part, piece in found)
            self._add_record(pack_format.File(digest, len(data), pack_format.FILE, parts))
        return named(digest)

    def finish(self) -> None:
        """When this returns, all that was sent is there for good."""
        self._seal()
        self._await(0)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    # -- deciding

    def _records(self, contents: list[bytes]) -> dict[bytes, pack_format.File]:
        """How contents are made of chunks, where that is not known there."""
        found = {d: pack_format.File(d, *file) for d in contents if (file := self._index.file(d))}
        untold = self._there.untold(list(found))
        return {digest: file for digest, file in found.items() if digest in untold}

    def _chunks(self, contents: list[bytes]) -> dict[bytes, int]:
        """The chunks that are not there and their lengths, in the order they lie here."""
        lengths: dict[bytes, int] = {}
        for digest in contents:
            lengths.update(
                part for part in self._reader.parts(digest) if part[0] != pack_format.HOLE
            )
        order: list[tuple[int, int, bytes]] = []
        for digest in self._absent(list(lengths)):
            where = self._index.place(digest)
            if where is None:
                raise Damaged(f"the chunk {named(digest)} is missing here", hint="clew fsck")
            order.append((where.block, where.start, digest))
        return {digest: lengths[digest] for _, _, digest in sorted(order)}

    def _absent(self, chunks: list[bytes]) -> set[bytes]:
        """Those of these chunks that are not there, and not on their way."""
        return self._there.lacking([d for d in dict.fromkeys(chunks) if d not in self._given])

    # -- acting

    def _add(self, digest: bytes, data: bytes, *, whole: bool) -> None:
        self._given.add(digest)
        if len(data) >= chunking.SMALLEST:
            self._blocks.insert(-1, OpenBlock())
            self._blocks[-2].add(digest, data, whole=whole)
        else:
            self._blocks[-1].add(digest, data, whole=whole)
            if self._blocks[-1].length >= BLOCK:
                self._blocks.append(OpenBlock())
        self._open_bytes += len(data)
        self._open_chunks += 1
        self._seal_full()

    def _add_record(self, record: pack_format.File) -> None:
        if record.digest not in self._told:
            self._told.add(record.digest)
            self._blocks[-1].files.append(record)
            self._open_records += 1
            self._seal_full()

    def _seal_full(self) -> None:
        if self._open_bytes >= PACK or max(self._open_chunks, self._open_records) >= CHUNKS:
            self._seal()

    def _seal(self) -> None:
        """Put the pack that is open."""
        blocks, self._blocks = self._blocks, [OpenBlock()]
        self._open_bytes = self._open_chunks = self._open_records = 0
        if any(block.length or block.files for block in blocks):
            size = sum(block.length for block in blocks)
            self._waiting.append((size, self._pool.submit(_put, self._there, blocks)))
            self._await(self._there.at_once)

    def _await(self, most: int) -> None:
        while len(self._waiting) > most:
            size, future = self._waiting.popleft()
            self.bytes += future.result()
            self._done += size
            self._progress(self._done, self._total)


def _put(there: There, blocks: list[OpenBlock]) -> int:
    """Put one pack; the bytes it took."""
    return there.put_pack(*packed(blocks))


def packed(blocks: list[OpenBlock]) -> tuple[bytes, bytes]:
    """A pack of these blocks, and the table that it ends with."""
    data = bytearray(pack_format.MAGIC)
    table = pack_format.Table([], [])
    for block in blocks:
        length, chunks = block.length, block.chunks
        if length:
            codec, stored = compress(block.take())
            table.blocks.append(pack_format.Block(len(data), len(stored), length, codec, chunks))
            data += stored
        table.files.extend(block.files)
    tail = pack_format.encode(table, position=len(data))
    data += tail
    return bytes(data), tail
