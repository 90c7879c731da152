"""Download: fetch, verify and store the chunks that are missing here.

Each chunk is hashed before it is stored, each content as a whole before it gets its name. Chunks
are flushed as they arrive, so an interrupted pull continues where it was. Until their content is
complete nothing names them, and gc may remove them after the pull has ended.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import blake3

from clew.errors import Damaged
from clew.store.content_reader import ContentReader, hash_zeros
from clew.store.content_writer import ContentWriter
from clew.store.index import ChunkLocation as Where
from clew.store.index import Index
from clew.store.packs import pack_format
from clew.store.remotes.object_storage import REPAIR, damaged_object
from clew.store.remotes.remote_index import Remote
from clew.store.remotes.upload import Progress
from clew.store.types import format_digest

_PARALLEL_FETCHES = 3
"""Packs that are fetched at the same time."""

_Parts = list[tuple[bytes, int]]


class _Fetch(NamedTuple):
    """The chunks to fetch from one block."""

    where: Where
    chunks: list[tuple[bytes, int, int]]
    """(digest, start, length)"""


def plan_fetches(index: Index, chunks: Iterable[bytes]) -> dict[str, list[_Fetch]]:
    """The blocks that contain these chunks, by pack, in the order of the pack."""
    blocks: dict[int, _Fetch] = {}
    for digest in chunks:
        where = index.locate(digest)
        assert where is not None
        fetch = blocks.setdefault(where.block, _Fetch(where, []))
        fetch.chunks.append((digest, where.start, where.size))
    packs: dict[str, list[_Fetch]] = {}
    for number in sorted(blocks):
        packs.setdefault(blocks[number].where.pack, []).append(blocks[number])
    return packs


class Download:
    """Fetches contents from a remote."""

    def __init__(
        self, remote: Remote, writer: ContentWriter, reader: ContentReader, progress: Progress
    ) -> None:
        self._remote = remote
        self._writer = writer
        self._reader = reader
        self._progress = progress
        self.bytes = 0
        """Bytes of packs that were fetched."""

    def read(self, content: bytes, *, most: int) -> bytes:
        """Fetch and verify a content without storing it. Damaged if it has more than `most` bytes,
        because a remote is untrusted."""
        parts = self._parts(content)
        if sum(length for _, length in parts) > most:
            raise self._damage(f"{format_digest(content)} has more than {most} bytes")
        wanted = {part for part, _ in parts if part != pack_format.HOLE}
        self._check_available(wanted)
        chunks = {digest: data for pack in self._fetched(wanted) for digest, data in pack}
        data = b"".join(bytes(n) if part == pack_format.HOLE else chunks[part] for part, n in parts)
        if blake3.blake3(data).digest() != content:
            raise self._damage(f"{format_digest(content)} does not have that digest")
        return data

    def receive(self, contents: Iterable[bytes]) -> None:
        """Fetch and store the contents that are missing here."""
        wanted = list(contents)
        self._writer.hold(wanted)
        absent = {digest for digest in wanted if self._writer.held.get(digest) is not True}
        parts = {digest: self._parts(digest) for digest in absent}
        pack_format.check_repeated(parts.values())
        chunks = {part for found in parts.values() for part, _ in found if part != pack_format.HOLE}
        self._writer.hold(list(chunks))
        missing = chunks - self._writer.held.keys()
        self._check_available(missing)
        single = {d for d in absent & missing if self._remote.index.file(d) is None}
        self._store(missing, single)
        for digest in sorted(absent - single):
            self._add_content(digest, parts[digest])
        self._writer.flush()

    def _store(self, missing: set[bytes], single: set[bytes]) -> None:
        where = (self._remote.index.locate(digest) for digest in missing)
        done, total = 0, sum(place.size for place in where if place is not None)
        self._progress(done, total)
        for pack in self._fetched(missing):
            for digest, data in pack:
                self._writer.add_chunk(digest, data, whole=digest in single)
                done += len(data)
            self._writer.flush()  # a pack at a time: what has arrived is not fetched again
            self._progress(done, total)

    def _add_content(self, digest: bytes, parts: _Parts) -> None:
        """Verify a content whose chunks are all stored, and add its record."""
        hasher, size = blake3.blake3(), 0
        for part, length in parts:
            if part == pack_format.HOLE:
                hash_zeros(hasher, length)
            else:
                data = self._reader.chunk(part)
                if len(data) != length:
                    raise self._damage(f"{format_digest(part)} does not have that length")
                hasher.update(data)
            size += length
        if hasher.digest() != digest:
            raise self._damage(f"{format_digest(digest)} does not have that digest")
        record = self._remote.index.file(digest)
        kind = pack_format.FILE if record is None else record[1]
        self._writer.add_file(
            pack_format.FileRecord(digest, size, kind, pack_format.pack_parts(parts))
        )

    def _parts(self, digest: bytes) -> _Parts:
        """A content of the remote as chunks and holes."""
        record = self._remote.index.file(digest)
        if record is not None:
            return pack_format.unpack_parts(record[2])
        where = self._remote.index.locate(digest)
        if where is None:
            raise self._damage(f"{format_digest(digest)} is missing")
        return [(digest, where.size)]

    def _check_available(self, chunks: Iterable[bytes]) -> None:
        for digest in chunks:
            if self._remote.index.locate(digest) is None:
                raise self._damage(f"the chunk {format_digest(digest)} is missing")

    def _fetched(self, chunks: Iterable[bytes]) -> Iterator[list[tuple[bytes, bytes]]]:
        """Verified chunks, one pack at a time, while the next packs are being fetched."""
        waiting = deque(plan_fetches(self._remote.index, chunks).items())
        fetching: deque[tuple[int, Future[list[tuple[bytes, bytes]]]]] = deque()
        with ThreadPoolExecutor(_PARALLEL_FETCHES, thread_name_prefix="clew-receive") as pool:
            try:
                while waiting or fetching:
                    while waiting and len(fetching) < _PARALLEL_FETCHES:
                        pack, fetches = waiting.popleft()
                        size = sum(fetch.where.stored for fetch in fetches)
                        fetching.append((size, pool.submit(self._fetch, pack, fetches)))
                    size, future = fetching.popleft()
                    self.bytes += size
                    yield future.result()
            finally:
                for _, future in fetching:
                    future.cancel()

    def _fetch(self, pack: str, fetches: list[_Fetch]) -> list[tuple[bytes, bytes]]:
        ranges = [(fetch.where.position, fetch.where.stored) for fetch in fetches]
        blocks: list[bytes] = self._remote.storage.get_ranges(f"packs/{pack}.pack", ranges)
        chunks: list[tuple[bytes, bytes]] = []
        for data, fetch in zip(blocks, fetches, strict=True):
            length, codec = fetch.where.length, fetch.where.codec
            try:
                block = pack_format.decompress_block(data, length=length, codec=codec, where=pack)
            except Damaged as error:
                raise self._damaged_pack(pack) from error
            for digest, start, size in fetch.chunks:
                chunk = block[start : start + size]
                if blake3.blake3(chunk).digest() != digest:
                    raise self._damaged_pack(pack)
                chunks.append((digest, chunk))
        return chunks

    def _damaged_pack(self, pack: str) -> Damaged:
        return damaged_object(self._remote.url, f"packs/{pack}.pack")

    def _damage(self, what: str) -> Damaged:
        tables = "".join(f"; tables/{name} is damaged" for name in self._remote.damaged[:1])
        return Damaged(f"the remote {self._remote.url} is damaged: {what}{tables}", hint=REPAIR)
