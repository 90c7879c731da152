"""The value types of the store's interface."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from clew.documents.ids import Digest

PREFIX = "blake3:"
_NAME = re.compile(r"blake3:[0-9a-f]{64}")
_signed = operator.attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")


def format_digest(digest: bytes) -> Digest:
    """The content id: `blake3:` and 64 hexadecimal digits."""
    return Digest(PREFIX + digest.hex())


def parse_digest(name: str) -> bytes | None:
    """The 32 bytes of a content id; None if it is not one."""
    return bytes.fromhex(name[len(PREFIX) :]) if _NAME.fullmatch(name) else None


class Signature(NamedTuple):
    """Identifies the state of a file: with an equal signature it has the same bytes."""

    dev: int
    ino: int
    size: int
    mtime: int  # ns
    ctime: int  # ns

    @classmethod
    def of(cls, status: os.stat_result) -> Signature:
        return tuple.__new__(cls, _signed(status))  # faster than the constructor


class BlockShare(Protocol):
    """A block that contains new content. `stored` is known once it is compressed."""

    length: int
    stored: int | None


class Stored:
    """Content that is stored once `flush` has returned (with keep=False: only hashed)."""

    __slots__ = ("_shares", "digest", "size")

    def __init__(
        self, digest: Digest, size: int, shares: Sequence[tuple[BlockShare, int]] = ()
    ) -> None:
        self.digest = digest
        self.size = size
        self._shares = shares

    @property
    def new_bytes(self) -> int:
        """Bytes that this added on disk, after de-duplication and compression.

        Small contents are compressed together, so each counts its share. Before `flush`, parts
        that still wait to be compressed count in full.
        """
        total = 0
        for block, length in self._shares:
            if block.stored is None:
                total += length
            else:
                total += -(-block.stored * length // max(block.length, 1))
        return total

    def __repr__(self) -> str:
        return f"Stored({self.digest!r}, size={self.size}, new_bytes={self.new_bytes})"


class Problem(NamedTuple):
    what: str
    where: str


class CheckReport(NamedTuple):
    checked: int
    """Chunks and files whose bytes were hashed again."""
    problems: list[Problem]


class Reclaimed(NamedTuple):
    files: int
    """Contents that were removed."""
    bytes: int
    """Bytes that were, or would be, freed on disk."""
