"""Positions in the log of a container, by the timestamps that Kubernetes puts before its lines.

Kubernetes knows no other positions: files are rotated, and containers and Pods replaced.
"""

import re
from typing import NamedTuple

_MAX_LINE = 256 << 10
"""Bytes of a line that are kept until it is complete."""
_MAX_STAMP = 40
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|[+-]\d\d:\d\d)")
_POSITION = re.compile(
    r"(?P<second>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(?P<zone>Z|[+-]\d\d:\d\d)_(?P<count>\d{1,9})"
)


class LogChunk(NamedTuple):
    """Part of a log, and where to continue after it."""

    data: bytes
    position: str


class Position(NamedTuple):
    """After the first `lines` lines that have this time."""

    time: str
    lines: int

    def __str__(self) -> str:
        return f"{self.time}_{self.lines}"

    @property
    def since(self) -> str:
        """The time in whole seconds, as the API takes it."""
        found = _POSITION.fullmatch(str(self))
        assert found is not None
        return found["second"] + found["zone"]


def parse_position(text: str) -> Position | None:
    """None: it is no position of such a log."""
    found = _POSITION.fullmatch(text)
    return found and Position(text.rpartition("_")[0], int(found["count"]))


class LogLines:
    """Takes the timestamps off the lines, and leaves out what precedes a position."""

    def __init__(self, after: Position | None) -> None:
        self.position = after or Position("", 0)
        """After the last complete line."""
        self._after = after
        self._repeated = 0
        """How many lines with the time of `after` have come again."""
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """The complete lines; an endless one in parts."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        found = [text + b"\n" for line in lines if (text := self._take(line)) is not None]
        if len(self._rest) > _MAX_LINE:
            found.append(self._take(self._rest) or b"")
            self._rest = b""
        return b"".join(found)

    def end(self) -> bytes:
        """The last line, if it did not end."""
        rest, self._rest = self._rest, b""
        return (self._take(rest) or b"") if rest else b""

    def _take(self, line: bytes) -> bytes | None:
        """The text of a line; None if it came before."""
        stamp, separator, text = line.partition(b" ")
        if not separator or len(stamp) > _MAX_STAMP or not _STAMP.fullmatch(stamp):
            return line  # the rest of an endless line
        time = stamp.decode()
        if self._came_before(time):
            return None
        same = time == self.position.time
        self.position = Position(time, self.position.lines + 1 if same else 1)
        return text

    def _came_before(self, time: str) -> bool:
        if self._after is None:
            return False
        if time == self._after.time:
            self._repeated += 1
            return self._repeated <= self._after.lines
        # Times of the same length and zone compare as texts.
        return len(time) == len(self._after.time) and time < self._after.time
