"""Logs by lines, and what was found in them."""

from clew.documents.document import Document


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
    blocks: tuple[tuple[int, int], ...]
    """For each block, the number of its first line, from 0, and the offset of its first byte. The
    last block grows while the log does."""


class LogMatches(Document, frozen=True, kw_only=True):
    """The numbers of lines that contain a text, from 0. `next_block`: the `from` of the request
    that goes on; null at the end."""

    attempt: str
    lines: tuple[int, ...]
    next_block: int | None
