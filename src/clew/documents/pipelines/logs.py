"""Logs by lines, and what was found in them."""

from msgspec import Struct

from clew.documents.document import Document


class LogBlock(Struct, frozen=True, array_like=True):
    """In JSON an array, since a log of a gigabyte has thousands of blocks."""

    line: int
    """The number of its first line, from 0."""
    offset: int
    """The offset of its first byte."""


class LogLines(Document, frozen=True, kw_only=True):
    """Where the lines of a log are. It is divided into blocks of about 64 KiB, which end with a
    line; a longer line counts as several."""

    attempt: str
    """The uid of the execution that prints it; empty before it runs."""
    complete: bool
    """Nothing follows."""
    lines: int
    size: int
    """Bytes."""
    first_block: int
    """The number of the first block listed."""
    blocks: tuple[LogBlock, ...]
    """The last one grows while the log does."""


class LogMatches(Document, frozen=True, kw_only=True):
    """The numbers of lines that contain a text, from 0. `next_block`: the `from` of the request
    that goes on; null at the end."""

    attempt: str
    lines: tuple[int, ...]
    next_block: int | None
