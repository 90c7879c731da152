"""Exchange content with a client in packs: import what it sends, export what it lacks.

Imported packs are untrusted: each chunk is hashed before it is stored, each content as a whole
before it gets its name, and the size of a decompressed pack is limited. Imported contents, and
those that were stored already, are leased while the store is open. For an export, a client first
requests the chunk lists of its contents, then the chunks that it lacks. Each response is one pack
of bounded size; no state is kept between requests.
"""

from collections.abc import Iterable, Iterator, Sequence

import blake3

from clew.errors import Damaged, NoContent, UsageError
from clew.store.content_reader import Check, ContentReader, hash_zeros
from clew.store.content_writer import ContentWriter
from clew.store.index import Index
from clew.store.packs import chunking, pack_format
from clew.store.packs.pack_format import PART
from clew.store.packs.pack_writer import OpenBlock
from clew.store.remotes.upload import BLOCK_BYTES, PACK_BYTES, build_pack
from clew.store.types import format_digest


class PackImport:
    """Imports packs into this store."""

    def __init__(self, index: Index, writer: ContentWriter, reader: ContentReader) -> None:
        self._index = index
        self._writer = writer
        self._reader = reader

    def missing_chunks(self, chunks: Sequence[bytes]) -> list[bytes]:
        """Those of these chunks that are not stored."""
        self._writer.hold(list(chunks))
        return [digest for digest in chunks if self._index.locate(digest) is None]

    def missing_contents(self, contents: Iterable[bytes]) -> list[bytes]:
        """Those of these contents that are not stored. One whose only chunk is stored as a part of
        others becomes a content of its own."""
        wanted = list(contents)
        self._writer.hold(wanted)
        absent = []
        for digest in wanted:
            if self._writer.held.get(digest) is True:
                continue
            where = self._index.locate(digest)
            if where is None:
                absent.append(digest)
            else:
                parts = pack_format.pack_parts([(digest, where.size)])
                self._writer.add_file(
                    pack_format.FileRecord(digest, where.size, pack_format.FILE, parts)
                )
        self._writer.flush()
        return absent

    def import_pack(self, pack: bytes, check: Check = lambda: None) -> None:
        """Store the content of a pack durably. `check` is called repeatedly. If it raises, only
        complete contents are stored."""
        try:
            table = pack_format.read_pack(pack, where="the pack")
            pack_format.check_repeated(PART.iter_unpack(file.parts) for file in table.files)
            chunks = list(_chunks(pack, table, check))
        except Damaged as error:
            raise UsageError(error.message, hint=error.hint or "send it again") from error
        missing = set(self.missing_chunks([chunk.digest for chunk, _ in chunks]))
        for chunk, data in chunks:
            if chunk.digest in missing:
                missing.discard(chunk.digest)
                self._writer.add_chunk(chunk.digest, data, whole=chunk.whole)
        self._writer.flush()
        for file in table.files:
            self._add_content(file, check)
        self._writer.flush()

    def put(self, data: bytes) -> None:
        """Store one content."""
        self._writer.put_data(data)
        self._writer.flush()

    def _add_content(self, file: pack_format.FileRecord, check: Check) -> None:
        """Verify a content whose chunks are all stored, and add its record."""
        hasher = blake3.blake3()
        parts = pack_format.unpack_parts(file.parts)
        absent = self.missing_chunks([part for part, _ in parts if part != pack_format.HOLE])
        if absent:
            raise UsageError(
                f"{format_digest(file.digest)} lacks its chunk {format_digest(absent[0])}",
                hint="send that chunk first",
            )
        for part, length in parts:
            check()
            if part == pack_format.HOLE:
                hash_zeros(hasher, length, check)
                continue
            data = self._reader.chunk(part)
            if len(data) != length:
                raise UsageError(f"{format_digest(part)} does not have that length")
            hasher.update(data)
        if hasher.digest() != file.digest:
            raise UsageError(f"{format_digest(file.digest)} does not have that digest")
        self._writer.hold([file.digest])
        if self._writer.held.get(file.digest) is not True:
            self._writer.add_file(file)


def _chunks(
    pack: bytes, table: pack_format.Table, check: Check
) -> Iterator[tuple[pack_format.Chunk, bytes]]:
    for block in table.blocks:
        check()
        stored = pack[block.position : block.position + block.stored]
        data = pack_format.decompress_block(
            stored, length=block.length, codec=block.codec, where="the pack"
        )
        at = 0
        for chunk in block.chunks:
            content = data[at : at + chunk.length]
            at += chunk.length
            if blake3.blake3(content).digest() != chunk.digest:
                raise Damaged(f"{format_digest(chunk.digest)} does not have that digest")
            yield chunk, content


class PackExport:
    """Exports contents of this store in packs."""

    def __init__(self, index: Index, reader: ContentReader) -> None:
        self._index = index
        self._reader = reader

    def records(self, contents: Iterable[bytes]) -> bytes:
        """A pack with the chunk lists of these contents, except those that are one chunk."""
        block = OpenBlock()
        for digest in contents:
            file = self._index.file(digest)
            if file is not None:
                block.files.append(pack_format.FileRecord(digest, *file))
            elif self._index.locate(digest) is None:
                raise _not_stored(digest)
        return build_pack([block])[0]

    def chunks(self, chunks: Iterable[bytes], *, alone: Iterable[bytes]) -> bytes:
        """A pack of as many of these chunks as fit, and at least one. `alone`: chunks that are
        contents of their own."""
        whole = set(alone)
        order: list[tuple[int, int, bytes]] = []
        for digest in {*chunks, *whole}:
            where = self._index.locate(digest)
            if where is None:
                raise _not_stored(digest)
            order.append((where.block, where.start, digest))
        blocks, length = [OpenBlock()], 0
        for _, _, digest in sorted(order):
            data = self._reader.chunk(digest)
            if len(data) >= chunking.MIN_CHUNK or blocks[-1].length >= BLOCK_BYTES:
                blocks.append(OpenBlock())
            blocks[-1].add(digest, data, whole=digest in whole)
            length += len(data)
            if length >= PACK_BYTES:
                break
        return build_pack(blocks)[0]


def _not_stored(digest: bytes) -> NoContent:
    return NoContent(f"{format_digest(digest)} is not stored here", hint="clew fsck")
