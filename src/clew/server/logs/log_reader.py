"""The logs that clients read now: their indexes, which grow, and search in them."""

import re
import threading
from collections import OrderedDict
from typing import NamedTuple

from clew.documents.pipelines.logs import LogBlock
from clew.errors import Conflict, NotFound
from clew.server.logs.line_index import LineIndex
from clew.server.logs.log_source import LogSource

_MAX_LOGS = 64
"""Logs whose index is kept. An index of a million lines takes 100 kB."""
MAX_MATCHES = 10_000
"""Matching lines in one answer."""
_MAX_SEARCH_BYTES = 256 << 20
"""How much one request searches."""


class LogPosition(NamedTuple):
    """The size and the lines of a log, as far as it is known."""

    lines: int
    size: int
    blocks: list[LogBlock]


class Matches(NamedTuple):
    lines: list[int]
    next_block: int | None
    """The position at which the next request continues; None at the end."""


class _Log:
    def __init__(self) -> None:
        self.index = LineIndex()
        self.lock = threading.Lock()


class LogReader:
    """Safe to use from any thread."""

    def __init__(self) -> None:
        self._logs: OrderedDict[str, _Log] = OrderedDict()
        self._lock = threading.Lock()

    def position(self, key: str, source: LogSource) -> LogPosition:
        """Read what is new of a log. `key`: which log of the attempt it is."""
        log = self._log(f"{source.attempt} {key}")
        with log.lock:
            if not (source.complete and log.index.size >= source.size and source.file is None):
                log.index.feed(source.read(log.index.size))
            return LogPosition(log.index.lines, log.index.size, list(log.index.blocks))

    def read_block(self, key: str, source: LogSource, number: int) -> bytes:
        found = self.position(key, source)
        if number >= len(found.blocks):
            raise NotFound(f"the log has {len(found.blocks)} blocks", hint="read its lines again")
        start = found.blocks[number].offset
        last = number + 1 == len(found.blocks)
        stop = found.size if last else found.blocks[number + 1].offset
        return b"".join(source.read(start, stop))

    def search(self, key: str, source: LogSource, text: str, *, first_block: int) -> Matches:
        """The lines that contain `text`, from a block on. Upper and lower case are alike."""
        found = self.position(key, source)
        if first_block >= len(found.blocks):
            raise Conflict("the log has changed", hint="search again")
        pattern = re.compile(re.escape(text.encode()), re.IGNORECASE)
        lines: list[int] = []
        searched = 0
        for number in range(first_block, len(found.blocks)):
            block = found.blocks[number]
            if searched >= _MAX_SEARCH_BYTES or len(lines) >= MAX_MATCHES:
                return Matches(lines, number)
            last = number + 1 == len(found.blocks)
            stop = found.size if last else found.blocks[number + 1].offset
            data = b"".join(source.read(block.offset, stop))
            searched += len(data)
            lines += _matching_lines(data, pattern, block.line)
        return Matches(lines, None)

    def _log(self, key: str) -> _Log:
        with self._lock:
            log = self._logs.setdefault(key, _Log())
            self._logs.move_to_end(key)
            if len(self._logs) > _MAX_LOGS:
                self._logs.popitem(last=False)
            return log


def _matching_lines(data: bytes, pattern: re.Pattern[bytes], first: int) -> list[int]:
    """The numbers of the lines of a block that match."""
    lines: list[int] = []
    line, at = first, 0
    for match in pattern.finditer(data):
        line += data.count(b"\n", at, match.start())
        at = match.start()
        if not lines or lines[-1] != line:
            lines.append(line)
    return lines
