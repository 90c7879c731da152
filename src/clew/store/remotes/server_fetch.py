"""Fetch the content that this store lacks from a server.

The server is not trusted: `pack_import` verifies everything. Contents are stored pack by pack, so a
transfer that is interrupted continues with the rest.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from clew.errors import Damaged, UsageError
from clew.store.packs import pack_format
from clew.store.remotes.pack_transfer import PackImport
from clew.store.types import format_digest

MAX_DIGESTS = 2000
"""Digests in one request: some megabytes of small files."""

Progress = Callable[[int, int], None]


class ContentSource(Protocol):
    """A server that has the contents."""

    def records(self, contents: Sequence[bytes]) -> bytes:
        """A pack with the chunk lists of these contents."""

    def chunks(self, chunks: Sequence[bytes], alone: Sequence[bytes]) -> bytes:
        """A pack of some of these, at least one; `alone` are contents of their own."""


def fetch_contents(
    pack_import: PackImport,
    source: ContentSource,
    contents: Iterable[bytes],
    progress: Progress = lambda *_: None,
) -> None:
    """Fetch and store the contents that are missing here."""
    absent = pack_import.missing_contents(contents)
    done, total = 0, len(absent)
    for at in range(0, total, MAX_DIGESTS):
        wanted = absent[at : at + MAX_DIGESTS]
        records = source.records(wanted)
        files = pack_format.read_pack(records, where="the pack").files
        parts = {part for file in files for part, _ in pack_format.unpack_parts(file.parts)} - {
            pack_format.HOLE
        }
        alone = set(wanted) - {file.digest for file in files}
        _fetch_chunks(pack_import, source, parts - alone, alone)
        _take(pack_import, records)
        done += len(wanted)
        progress(done, total)


def _fetch_chunks(
    pack_import: PackImport, source: ContentSource, parts: set[bytes], alone: set[bytes]
) -> None:
    missing = pack_import.missing_chunks([*parts, *alone])
    while missing:
        wanted = missing[:MAX_DIGESTS]
        pack = source.chunks(
            [digest for digest in wanted if digest not in alone],
            [digest for digest in wanted if digest in alone],
        )
        _take(pack_import, pack)
        remaining = pack_import.missing_chunks(wanted)
        if len(remaining) == len(wanted):
            raise Damaged(
                f"{format_digest(remaining[0])} was requested and not sent", hint="clew fsck"
            )
        missing = remaining + missing[MAX_DIGESTS:]


def _take(pack_import: PackImport, pack: bytes) -> None:
    try:
        pack_import.import_pack(pack)
    except UsageError as error:  # an error of the server, not of the user
        raise Damaged(error.message, hint="run clew fsck on the server") from error
