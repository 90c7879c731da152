"""The format of a pack file: blocks of chunks, then a table of them (`docs/formats/store.md`).

A pack is never changed after it is written, except that gc frees blocks in place if it has no room
to copy. The table describes the pack, so the index can be rebuilt from the packs alone.
"""

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import blake3

from clew.errors import Damaged

MAGIC = b"CLEWPAK1"
END = b"CLEWEND1"
RAW, ZSTD = 0, 1
FILE = 0
HOLE = bytes(32)
"""Stands for a run of zeros in a list of parts."""
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of fallocate(2)

_COUNT = struct.Struct("<I")
_BLOCK = struct.Struct("<QIIBI")
_CHUNK = struct.Struct("<32sIB")
_FILE = struct.Struct("<32sQBI")
PART = struct.Struct("<32sQ")
_FOOTER = struct.Struct("<QQ32s8s")

MAX_CONTENT = 64 << 20
"""Bytes of content in an untrusted pack. Senders end a pack after 16 MiB."""
MAX_CHUNKS = 500_000
"""Chunks, and contents, in such a pack. Senders end a pack at a fifth of that."""
MAX_TABLE = 256 << 20
"""Bytes of the table of such a pack."""
MAX_REPEATED = 64 << 30
"""Bytes of holes and repeated chunks that are hashed at once: they cost a sender nothing, but the
receiver must hash them."""
_LARGEST = (1 << 63) - 1


class Chunk(NamedTuple):
    digest: bytes
    length: int
    whole: bool
    """Whether it is a content of its own, not a part of one."""


class Block(NamedTuple):
    position: int
    stored: int
    length: int
    codec: int
    chunks: list[Chunk]


class FileRecord(NamedTuple):
    digest: bytes
    size: int
    kind: int
    parts: bytes
    """PART records: (digest or HOLE, length)."""


class Table(NamedTuple):
    blocks: list[Block]
    files: list[FileRecord]


def encode_table(table: Table, *, position: int) -> bytes:
    """The table and footer, to be written at `position`."""
    out = [_COUNT.pack(len(table.blocks))]
    for block in table.blocks:
        out.append(_BLOCK.pack(*block[:4], len(block.chunks)))
        out += [_CHUNK.pack(*chunk) for chunk in block.chunks]
    out.append(_COUNT.pack(len(table.files)))
    for file in table.files:
        out.append(_FILE.pack(*file[:3], len(file.parts) // PART.size))
        out.append(file.parts)
    body = b"".join(out)
    return body + _FOOTER.pack(position, len(body), blake3.blake3(body).digest(), END)


def read_table(path: Path) -> Table:
    """Read and verify the table of a pack."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < len(MAGIC) + _FOOTER.size or file.read(len(MAGIC)) != MAGIC:
            raise Damaged(f"{path} is not a pack, or truncated", hint="clew fsck")
        file.seek(size - _FOOTER.size)
        position, length, digest, end = _FOOTER.unpack(file.read(_FOOTER.size))
        if end != END or position + length + _FOOTER.size != size:
            raise Damaged(f"{path} is truncated or overwritten at its end", hint="clew fsck")
        file.seek(position)
        body = file.read(length)
    if blake3.blake3(body).digest() != digest:
        raise Damaged(f"the table of {path} does not match its digest", hint="clew fsck")
    return _decode(body)


def free_block(path: Path, block: Block) -> None:
    """Free the space of a block, if the file system supports it; it then reads as zeros."""
    import ctypes  # os has no fallocate with flags

    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    with open(path, "r+b", buffering=0) as file:
        fallocate(file.fileno(), _KEEP_SIZE | _PUNCH_HOLE, block.position, block.stored)


def without_freed_blocks(path: Path, table: Table) -> Table:
    """The table without the blocks that gc has freed in place, which read as zeros. A block that
    begins with zeros by itself has chunks that match their digests."""
    with open(path, "rb", buffering=0) as file:
        heads = [os.pread(file.fileno(), min(16, b.stored), b.position) for b in table.blocks]
    blocks = [
        block
        for block, head in zip(table.blocks, heads, strict=True)
        if any(head) or _is_intact(path, block)
    ]
    return Table(blocks, table.files)


def _is_intact(path: Path, block: Block) -> bool:
    try:
        data = read_block(
            path,
            position=block.position,
            stored=block.stored,
            length=block.length,
            codec=block.codec,
        )
    except Damaged:
        return False
    start = 0
    for chunk in block.chunks:
        if blake3.blake3(data[start : start + chunk.length]).digest() != chunk.digest:
            return False
        start += chunk.length
    return True


def tail_name(tail: bytes) -> str:
    """The name of the pack with this table and footer: the digest of the table."""
    return blake3.blake3(tail[: -_FOOTER.size]).hexdigest(length=16)


def read_tail(tail: bytes, *, where: str) -> tuple[Table, int]:
    """Verify and decode a table and footer; returns the table and the size of its pack."""
    try:
        position, length, digest, end = _FOOTER.unpack(tail[-_FOOTER.size :])
        body = tail[: -_FOOTER.size]
        if (
            end == END
            and length == len(body) <= MAX_TABLE
            and blake3.blake3(body).digest() == digest
        ):
            table = _decode(body, most=MAX_CHUNKS)
            _check(table, position, where=where)
            return table, position + len(tail)
    except struct.error:
        pass
    raise Damaged(f"{where} is damaged")


def read_pack(data: bytes, *, where: str) -> Table:
    """Verify and decode the table of a pack in memory."""
    if data[: len(MAGIC)] == MAGIC and len(data) >= len(MAGIC) + _FOOTER.size:
        position = _FOOTER.unpack(data[-_FOOTER.size :])[0]
        table, size = read_tail(data[position:], where=where)
        if size == len(data):
            return table
    raise Damaged(f"{where} is not a pack, or truncated")


def _check(table: Table, end: int, *, where: str) -> None:
    """Reject an untrusted pack that exceeds the limits or refers to bytes outside it. `end`: the
    end of its blocks."""
    decompressed = 0
    for block in table.blocks:
        decompressed += block.length
        inside = sum(chunk.length for chunk in block.chunks)
        if (
            inside > block.length
            or decompressed > MAX_CONTENT
            or block.position + block.stored > end
        ):
            raise Damaged(f"{where} decompresses to too much, or is truncated")
    for file in table.files:
        size = sum(length for _, length in PART.iter_unpack(file.parts))
        if size != file.size or size > _LARGEST or file.kind != FILE:
            raise Damaged(f"{where} has a content with a wrong size")


def check_repeated(contents: Iterable[Iterable[tuple[bytes, int]]]) -> None:
    """Reject contents with too many holes or repeated parts, which take long to hash."""
    total = 0
    lengths: dict[bytes, int] = {}
    for parts in contents:
        for part, length in parts:
            total += length
            if part != HOLE:
                lengths[part] = length
    if total - sum(lengths.values()) > MAX_REPEATED:
        raise Damaged(
            f"contents with more than {MAX_REPEATED >> 30} GiB of holes or repeated parts are not"
            " accepted",
            hint="exclude that file where it is recorded, or record it with --no-content",
        )


def _decode(body: bytes, *, most: int | None = None) -> Table:
    """`most`: the maximum number of chunks, and of contents."""
    at = _COUNT.size
    blocks: list[Block] = []
    chunks_left = files_left = len(body) if most is None else most
    for _ in range(_COUNT.unpack_from(body)[0]):
        position, stored, length, codec, count = _BLOCK.unpack_from(body, at)
        chunks_left -= count + 1
        if chunks_left < 0:
            raise Damaged("a pack holds too many chunks")
        at += _BLOCK.size
        end = at + count * _CHUNK.size
        chunks = [Chunk(d, n, bool(w)) for d, n, w in _CHUNK.iter_unpack(body[at:end])]
        blocks.append(Block(position, stored, length, codec, chunks))
        at = end
    files: list[FileRecord] = []
    (count,) = _COUNT.unpack_from(body, at)
    at += _COUNT.size
    if count > files_left:
        raise Damaged("a pack holds too many contents")
    for _ in range(count):
        digest, size, kind, parts = _FILE.unpack_from(body, at)
        at += _FILE.size
        end = at + parts * PART.size
        files.append(FileRecord(digest, size, kind, body[at:end]))
        at = end
    return Table(blocks, files)


def unpack_parts(packed: bytes) -> list[tuple[bytes, int]]:
    return list(PART.iter_unpack(packed))


def pack_parts(parts: Iterable[tuple[bytes, int]]) -> bytes:
    return b"".join(PART.pack(digest, length) for digest, length in parts)


def read_block(path: Path, *, position: int, stored: int, length: int, codec: int) -> bytes:
    """Read and decompress a block. The caller verifies its chunks."""
    with open(path, "rb", buffering=0) as file:
        data = b""
        while len(data) < stored:
            more = os.pread(file.fileno(), stored - len(data), position + len(data))
            if not more:
                raise Damaged(f"{path} is truncated", hint="clew fsck")
            data = data + more if data else more
    return decompress_block(data, length=length, codec=codec, where=str(path))


def decompress_block(data: bytes, *, length: int, codec: int, where: str) -> bytes:
    """Decompress a block."""
    if codec == RAW:
        plain = data
    elif codec == ZSTD:
        plain = _expand(data, where=where, length=length)
    else:
        raise Damaged(f"{where} holds a block of unknown codec {codec}", hint="clew fsck")
    if len(plain) != length:
        raise Damaged(f"a block of {where} has the wrong length", hint="clew fsck")
    return plain


def _expand(data: bytes, *, where: str, length: int) -> bytes:
    import zstandard  # late: most commands read no content

    try:
        if zstandard.frame_content_size(data) not in (length, -1):  # as much would be allocated
            raise Damaged(f"a block of {where} has the wrong length", hint="clew fsck")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=length)
    except zstandard.ZstdError as error:
        raise Damaged(f"a block of {where} cannot be decompressed", hint="clew fsck") from error
