"""Import: verify and store content that a client sends in packs.

Nothing that comes is believed: each chunk is hashed before it is stored, each content as a whole
before it gets its name, and no pack may unfold to more than is allowed. What was taken, or was
asked for and found, is leased as long as the store is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import blake3

from clew.errors import Damaged, UsageError
from clew.store.content_reader import Check, Reader, hash_zeros
from clew.store.content_writer import Writer
from clew.store.index import Index
from clew.store.packs import pack_format
from clew.store.packs.pack_format import PART
from clew.store.types import named


class Taking:
    """What a sender has and this store lacks."""

    def __init__(self, index: Index, writer: Writer, reader: Reader) -> None:
        self._index = index
        self._writer = writer
        self._reader = reader

    def lacking(self, chunks: Sequence[bytes]) -> list[bytes]:
        """Those of these chunks that are not here."""
        self._writer.hold(list(chunks))
        return [digest for digest in chunks if self._index.place(digest) is None]

    def missing(self, contents: Iterable[bytes]) -> list[bytes]:
        """Those of these contents that are not here. One of which the only chunk is here, but as
        a part of others, is a content of its own from now on."""
        wanted = list(contents)
        self._writer.hold(wanted)
        absent = []
        for digest in wanted:
            if self._writer.held.get(digest) is True:
                continue
            where = self._index.place(digest)
            if where is None:
                absent.append(digest)
            else:
                parts = pack_format.pack_parts([(digest, where.size)])
                self._writer.add_file(pack_format.File(digest, where.size, pack_format.FILE, parts))
        self._writer.flush()
        return absent

    def take(self, pack: bytes, check: Check = lambda: None) -> None:
        """Store what a pack holds. When this returns it is there for good. `check` is called now
        and then, and may raise: then what is whole is stored, and the rest is not."""
        try:
            table = pack_format.read_pack(pack, where="what was sent")
            pack_format.check_repeated(PART.iter_unpack(file.parts) for file in table.files)
            chunks = list(_chunks(pack, table, check))
        except Damaged as error:
            raise UsageError(error.message, hint=error.hint or "send it again") from error
        lacking = set(self.lacking([chunk.digest for chunk, _ in chunks]))
        for chunk, data in chunks:
            if chunk.digest in lacking:
                lacking.discard(chunk.digest)
                self._writer.add_chunk(chunk.digest, data, whole=chunk.whole)
        self._writer.flush()
        for file in table.files:
            self._name(file, check)
        self._writer.flush()

    def put(self, data: bytes) -> None:
        """Store a content by itself."""
        self._writer.put_data(data)
        self._writer.flush()

    def _name(self, file: pack_format.File, check: Check) -> None:
        """A content whose chunks are all here."""
        whole = blake3.blake3()
        parts = pack_format.parts_of(file.parts)
        absent = self.lacking([part for part, _ in parts if part != pack_format.HOLE])
        if absent:
            raise UsageError(
                f"{named(file.digest)} is made of {named(absent[0])}, which is not here",
                hint="send that first",
            )
        for part, length in parts:
            check()
            if part == pack_format.HOLE:
                hash_zeros(whole, length, check)
                continue
            data = self._reader.chunk(part)
            if len(data) != length:
                raise UsageError(f"{named(part)} does not have that length")
            whole.update(data)
        if whole.digest() != file.digest:
            raise UsageError(f"{named(file.digest)} does not have that digest")
        self._writer.hold([file.digest])
        if self._writer.held.get(file.digest) is not True:
            self._writer.add_file(file)


def _chunks(
    pack: bytes, table: pack_format.Table, check: Check
) -> Iterator[tuple[pack_format.Chunk, bytes]]:
    for block in table.blocks:
        check()
        stored = pack[block.position : block.position + block.stored]
        data = pack_format.expand(
            stored, length=block.length, codec=block.codec, where="what was sent"
        )
        at = 0
        for chunk in block.chunks:
            piece = data[at : at + chunk.length]
            at += chunk.length
            if blake3.blake3(piece).digest() != chunk.digest:
                raise Damaged(f"{named(chunk.digest)} does not have that digest")
            yield chunk, piece
