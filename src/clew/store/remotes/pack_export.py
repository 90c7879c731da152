"""Export: send the content that a client lacks, in packs made on request.

A client first requests the chunk lists of its contents, then the chunks that it lacks. Each
response is one pack of bounded size; no state is kept between requests.
"""

from collections.abc import Iterable

from clew.errors import NoContent
from clew.store.content_reader import ContentReader
from clew.store.index import Index
from clew.store.packs import chunking, pack_format
from clew.store.packs.pack_writer import OpenBlock
from clew.store.remotes.upload import BLOCK_BYTES, PACK_BYTES, build_pack
from clew.store.types import format_digest


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
