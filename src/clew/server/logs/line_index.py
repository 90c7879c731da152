"""An index of the lines of a log.

A log is divided into blocks of about 64 KiB that end with a line. A client that knows the first
line and the offset of each block can show any part of a log of a million lines: it fetches the
blocks that it shows. The index grows with the log.
"""

from collections.abc import Iterable

from clew.documents.pipelines.logs import LogBlock

BLOCK_BYTES = 64 << 10
"""A longer line is divided, and counts as several lines."""


class LineIndex:
    """The blocks of one log, as far as it was read."""

    def __init__(self) -> None:
        self.blocks = [LogBlock(0, 0)]
        """The last block is open: it grows with the log."""
        self.size = 0
        """How many bytes were read."""
        self._rest = b""
        """The bytes of the open block."""

    @property
    def lines(self) -> int:
        """The number of lines, with the last one if it has no end yet."""
        unended = bool(self._rest) and not self._rest.endswith(b"\n")
        return self.blocks[-1].line + self._rest.count(b"\n") + unended

    def feed(self, pieces: Iterable[bytes]) -> None:
        """Add what follows."""
        for piece in pieces:
            self.size += len(piece)
            data = self._rest + piece
            start = 0
            while len(data) - start >= BLOCK_BYTES:
                start = self._close_block(data, start)
            self._rest = data[start:]

    def _close_block(self, data: bytes, start: int) -> int:
        """Close the open block, whose bytes begin at `start`; return its end."""
        stop = start + BLOCK_BYTES
        end = data.rfind(b"\n", start, stop) + 1
        is_divided = end == 0
        if is_divided:
            end = _character_start(data, start, stop)
        last = self.blocks[-1]
        lines = data.count(b"\n", start, end) + is_divided
        self.blocks.append(LogBlock(last.line + lines, last.offset + end - start))
        return end

    def span(self, number: int) -> tuple[int, int]:
        """The first byte of a block, and the one after its last."""
        following = number + 1
        end = self.blocks[following].offset if following < len(self.blocks) else self.size
        return self.blocks[number].offset, end


def _character_start(data: bytes, start: int, stop: int) -> int:
    """`stop`, or up to three bytes earlier where a character of UTF-8 begins."""
    for end in range(stop, max(start, stop - 4), -1):
        if end < len(data) and data[end] & 0xC0 != 0x80:
            return end
    return stop
