"""Parse the headers Range and Content-Range, and make ETags."""

import os
import re
from dataclasses import dataclass

from clew.errors import UsageError

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_EMPTY_RANGE = re.compile(r"bytes \*/(\d{1,18})")


class Unsatisfiable(Exception):
    """The range begins after the end of the file."""


@dataclass(frozen=True)
class ByteRange:
    first: int
    length: int
    total: int

    @property
    def end(self) -> int:
        return self.first + self.length

    @property
    def header(self) -> str:
        return f"bytes {self.first}-{self.end - 1}/{self.total}"


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """The range of a file of `size` bytes; None: all of it, also for an unknown header, as HTTP
    requires."""
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        first, end = max(size - int(found[2]), 0), size
    else:
        first, end = int(found[1]), min(int(found[2]) + 1 if found[2] else size, size)
        if found[2] and int(found[2]) < first:
            return None
    if first >= size or first >= end:
        raise Unsatisfiable
    return ByteRange(first, end - first, size)


def parse_content_range(header: str) -> ByteRange:
    """The range that a request sends; `*`: nothing, since a range with a first and a last byte
    cannot be empty."""
    if empty := _EMPTY_RANGE.fullmatch(header.strip()):
        total = int(empty[1])
        return ByteRange(total, 0, total)
    found = _CONTENT_RANGE.fullmatch(header.strip())
    first, last, total = map(int, found.groups()) if found else (1, 0, 0)
    if not first <= last < total:
        raise UsageError("Content-Range must be: bytes FIRST-LAST/TOTAL, or bytes */TOTAL")
    return ByteRange(first, last - first + 1, total)


def etag_of(found: os.stat_result) -> str:
    """A value that changes whenever the file changes."""
    return f'"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"'
