"""The plain values the store takes and gives."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

PREFIX = "blake3:"
_NAME = re.compile(r"blake3:[0-9a-f]{64}")
_signed = operator.attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")


def named(digest: bytes) -> str:
    """The public name of content: `blake3:` and 64 hexadecimal digits."""
    return PREFIX + digest.hex()


def digest_of(name: str) -> bytes | None:
    """The 32 bytes a full name stands for; None when it is not one."""
    return bytes.fromhex(name[len(PREFIX) :]) if _NAME.fullmatch(name) else None


class Signature(NamedTuple):
    """What must be equal for a digest to be believed: the same file, not written since."""

    dev: int
    ino: int
    size: int
    mtime: int  # ns
    ctime: int  # ns

    @classmethod
    def of(cls, status: os.stat_result) -> Signature:
        return tuple.__new__(cls, _signed(status))  # many are made: quicker than the constructor


class Share(Protocol):
    """A block that new content went into; it knows what it weighs once it is compressed."""

    length: int
    stored: int | None


class Stored:
    """Content that is stored once `flush` has returned (with keep=False: only hashed)."""

    __slots__ = ("_shares", "digest", "size")

    def __init__(self, digest: str, size: int, shares: Sequence[tuple[Share, int]] = ()) -> None:
        self.digest = digest
        self.size = size
        self._shares = shares

    @property
    def new_bytes(self) -> int:
        """What this added on disk, after de-duplication and compression.

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


class Report(NamedTuple):
    checked: int
    """Chunks and files whose bytes were hashed again."""
    problems: list[Problem]


class Reclaimed(NamedTuple):
    files: int
    """Contents that nobody names any more."""
    bytes: int
    """What their going freed, or would free, on disk."""
