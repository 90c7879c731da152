"""Export: send the content that a client lacks, in packs made on request.

Who asks learns first what chunks its contents are made of, then asks for those it does not have.
Each answer is one pack of bounded size; nothing is remembered between two.
"""

from __future__ import annotations

from collections.abc import Iterable

from clew.errors import NoContent
from clew.store.content_reader import Reader
from clew.store.index import Index
from clew.store.packs import chunking, pack_format
from clew.store.packs.pack_writer import OpenBlock
from clew.store.remotes.upload import BLOCK, PACK, packed
from clew.store.types import named


class Giving:
    """What this store has and somebody lacks."""

    def __init__(self, index: Index, reader: Reader) -> None:
        self._index = index
        self._reader = reader

    def records(self, contents: Iterable[bytes]) -> bytes:
        """A pack that tells what chunks these are made of; one that is a chunk of its own is not
        told of."""
        block = OpenBlock()
        for digest in contents:
            file = self._index.file(digest)
            if file is not None:
                block.files.append(pack_format.File(digest, *file))
            elif self._index.place(digest) is None:
                raise _absent(digest)
        return packed([block])[0]

    def chunks(self, chunks: Iterable[bytes], *, alone: Iterable[bytes]) -> bytes:
        """A pack of as many of these chunks as fit, and of at least one; `alone`: those that are
        contents of their own."""
        whole = set(alone)
        order: list[tuple[int, int, bytes]] = []
        for digest in {*chunks, *whole}:
            where = self._index.place(digest)
            if where is None:
                raise _absent(digest)
            order.append((where.block, where.start, digest))
        blocks, length = [OpenBlock()], 0
        for _, _, digest in sorted(order):
            data = self._reader.chunk(digest)
            if len(data) >= chunking.SMALLEST or blocks[-1].length >= BLOCK:
                blocks.append(OpenBlock())
            blocks[-1].add(digest, data, whole=digest in whole)
            length += len(data)
            if length >= PACK:
                break
        return packed(blocks)[0]


def _absent(digest: bytes) -> NoContent:
    return NoContent(f"{named(digest)} is not stored here", hint="clew fsck")
