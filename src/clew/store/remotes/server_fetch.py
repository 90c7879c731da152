"""Fetch the content that this store lacks from a server.

What arrives is believed no more than what a sender brings: see `pack_import`. It is stored pack by
pack, so that who was cut off asks only for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from clew.errors import Damaged, UsageError
from clew.store.packs import pack_format
from clew.store.remotes.pack_import import Taking
from clew.store.types import named

AT_ONCE = 2000
"""Digests in one question: some megabytes of small files."""

Progress = Callable[[int, int], None]


class Giver(Protocol):
    """Who has the contents."""

    def records(self, contents: Sequence[bytes]) -> bytes:
        """A pack that tells what chunks these contents are made of."""

    def chunks(self, chunks: Sequence[bytes], alone: Sequence[bytes]) -> bytes:
        """A pack of some of these, at least one; `alone` are contents of their own."""


def bring(
    taking: Taking, giver: Giver, contents: Iterable[bytes], progress: Progress = lambda *_: None
) -> None:
    """Store the contents that are not here."""
    absent = taking.missing(contents)
    done, total = 0, len(absent)
    for at in range(0, total, AT_ONCE):
        wanted = absent[at : at + AT_ONCE]
        told = giver.records(wanted)
        files = pack_format.read_pack(told, where="what was sent").files
        parts = {part for file in files for part, _ in pack_format.parts_of(file.parts)} - {
            pack_format.HOLE
        }
        alone = set(wanted) - {file.digest for file in files}
        _bring_chunks(taking, giver, parts - alone, alone)
        _take(taking, told)
        done += len(wanted)
        progress(done, total)


def _bring_chunks(taking: Taking, giver: Giver, parts: set[bytes], alone: set[bytes]) -> None:
    lacking = taking.lacking([*parts, *alone])
    while lacking:
        asked = lacking[:AT_ONCE]
        pack = giver.chunks(
            [digest for digest in asked if digest not in alone],
            [digest for digest in asked if digest in alone],
        )
        _take(taking, pack)
        left = taking.lacking(asked)
        if len(left) == len(asked):
            raise Damaged(f"{named(left[0])} was asked for, and did not come", hint="clew fsck")
        lacking = left + lacking[AT_ONCE:]


def _take(taking: Taking, pack: bytes) -> None:
    try:
        taking.take(pack)
    except UsageError as error:  # to who sends it is that; to who asked it is damage
        raise Damaged(error.message, hint="clew fsck, where it comes from") from error
