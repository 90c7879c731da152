"""Upload: pack the chunks that a remote lacks, and put them there.

A killed push leaves complete packs, which the next push finds, and at most one unused pack per
thread.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import blake3

from clew.documents.ids import Digest
from clew.errors import Damaged
from clew.store.content_reader import ContentReader
from clew.store.index import Index
from clew.store.packs import chunking, pack_format
from clew.store.packs.pack_writer import OpenBlock, compress
from clew.store.types import format_digest

PACK_BYTES = 16 << 20
"""Bytes of content in a pack: small enough to lose little if a push is interrupted."""
PACK_CHUNKS = pack_format.MAX_CHUNKS // 5
"""Chunks, and records, in a pack."""
BLOCK_BYTES = 128 << 10
"""Bytes of small chunks that are compressed together; less than in a store, because a client that
lacks one chunk fetches the whole block. Larger chunks get blocks of their own."""

Progress = Callable[[int, int], None]
"""Called with the bytes of content that were transferred, and the total."""


class UploadTarget(Protocol):
    """The receiver of an upload: a remote or a server."""

    parallel_packs: int
    """Packs that are sent at the same time; with 1 they arrive in order."""

    def find_missing_chunks(self, chunks: Sequence[bytes]) -> set[bytes]:
        """Those of these chunks that the target does not have."""

    def find_missing_records(self, contents: Sequence[bytes]) -> set[bytes]:
        """Those of these contents whose chunk lists the target does not have."""

    def put_pack(self, pack: bytes, tail: bytes) -> int:
        """Store a pack durably, and return the bytes that were sent. `tail`: its table."""


class Upload:
    """Sends contents to a target that lacks them."""

    def __init__(
        self, index: Index, reader: ContentReader, target: UploadTarget, progress: Progress
    ) -> None:
        self._index = index
        self._reader = reader
        self._target = target
        self._progress = progress
        self._pool = ThreadPoolExecutor(target.parallel_packs, thread_name_prefix="clew-send")
        self._waiting: deque[tuple[int, Future[int]]] = deque()
        self._blocks: list[OpenBlock] = [OpenBlock()]
        self._open_bytes = self._open_chunks = self._open_records = 0  # in the open pack
        self._sent_chunks: set[bytes] = set()
        self._sent_records: set[bytes] = set()
        self._done = self._total = 0
        self.bytes = 0
        """Bytes that were sent."""

    def send(self, contents: Iterable[bytes]) -> None:
        """Send contents of this store that the target lacks."""
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

    def send_bytes(self, data: bytes) -> Digest:
        """Send a content that is not in the store; returns its digest."""
        digest = blake3.blake3(data).digest()
        pieces = chunking.slice_chunks(memoryview(data), chunking.find_cuts(data))
        chunks = [(blake3.blake3(piece).digest(), piece) for piece in pieces]
        absent = self._absent([part for part, _ in chunks])
        single = len(chunks) == 1
        for part, piece in chunks:
            if part in absent:
                self._total += len(piece)
                self._add(part, bytes(piece), whole=single)
                absent.discard(part)
        if not single and self._target.find_missing_records([digest]):
            parts = pack_format.pack_parts((part, len(piece)) for part, piece in chunks)
            self._add_record(pack_format.FileRecord(digest, len(data), pack_format.FILE, parts))
        return format_digest(digest)

    def finish(self) -> None:
        """Wait until everything that was sent is stored durably."""
        self._send_pack()
        self._wait(0)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    # -- decide

    def _records(self, contents: list[bytes]) -> dict[bytes, pack_format.FileRecord]:
        """The chunk lists that the target lacks."""
        found = {
            d: pack_format.FileRecord(d, *file) for d in contents if (file := self._index.file(d))
        }
        unknown = self._target.find_missing_records(list(found))
        return {digest: file for digest, file in found.items() if digest in unknown}

    def _chunks(self, contents: list[bytes]) -> dict[bytes, int]:
        """The chunks that the target lacks, with their lengths, in the order of the packs."""
        lengths: dict[bytes, int] = {}
        for digest in contents:
            lengths.update(
                part for part in self._reader.parts(digest) if part[0] != pack_format.HOLE
            )
        order: list[tuple[int, int, bytes]] = []
        for digest in self._absent(list(lengths)):
            where = self._index.locate(digest)
            if where is None:
                raise Damaged(
                    f"the chunk {format_digest(digest)} is missing here", hint="clew fsck"
                )
            order.append((where.block, where.start, digest))
        return {digest: lengths[digest] for _, _, digest in sorted(order)}

    def _absent(self, chunks: list[bytes]) -> set[bytes]:
        """Those of these chunks that the target lacks and that were not sent yet."""
        return self._target.find_missing_chunks(
            [d for d in dict.fromkeys(chunks) if d not in self._sent_chunks]
        )

    # -- act

    def _add(self, digest: bytes, data: bytes, *, whole: bool) -> None:
        self._sent_chunks.add(digest)
        if len(data) >= chunking.MIN_CHUNK:
            self._blocks.insert(-1, OpenBlock())
            self._blocks[-2].add(digest, data, whole=whole)
        else:
            self._blocks[-1].add(digest, data, whole=whole)
            if self._blocks[-1].length >= BLOCK_BYTES:
                self._blocks.append(OpenBlock())
        self._open_bytes += len(data)
        self._open_chunks += 1
        self._send_full_pack()

    def _add_record(self, record: pack_format.FileRecord) -> None:
        if record.digest not in self._sent_records:
            self._sent_records.add(record.digest)
            self._blocks[-1].files.append(record)
            self._open_records += 1
            self._send_full_pack()

    def _send_full_pack(self) -> None:
        if (
            self._open_bytes >= PACK_BYTES
            or max(self._open_chunks, self._open_records) >= PACK_CHUNKS
        ):
            self._send_pack()

    def _send_pack(self) -> None:
        """Send the open pack."""
        blocks, self._blocks = self._blocks, [OpenBlock()]
        self._open_bytes = self._open_chunks = self._open_records = 0
        if any(block.length or block.files for block in blocks):
            size = sum(block.length for block in blocks)
            self._waiting.append((size, self._pool.submit(_put, self._target, blocks)))
            self._wait(self._target.parallel_packs)

    def _wait(self, pending: int) -> None:
        while len(self._waiting) > pending:
            size, future = self._waiting.popleft()
            self.bytes += future.result()
            self._done += size
            self._progress(self._done, self._total)


def _put(target: UploadTarget, blocks: list[OpenBlock]) -> int:
    """Send one pack; returns its size."""
    return target.put_pack(*build_pack(blocks))


def build_pack(blocks: list[OpenBlock]) -> tuple[bytes, bytes]:
    """Encode a pack of these blocks; returns it and its table."""
    data = bytearray(pack_format.MAGIC)
    table = pack_format.Table([], [])
    for block in blocks:
        length, chunks = block.length, block.chunks
        if length:
            codec, stored = compress(block.join())
            table.blocks.append(pack_format.Block(len(data), len(stored), length, codec, chunks))
            data += stored
        table.files.extend(block.files)
    tail = pack_format.encode_table(table, position=len(data))
    data += tail
    return bytes(data), tail
