"""Which part of a file is asked for, or sent."""

import os
import re
from dataclasses import dataclass

from clew.errors import UsageError

_ASKED = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_SENT = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_NOTHING = re.compile(r"bytes \*/(\d{1,18})")


class Unsatisfiable(Exception):
    """The part begins where the file has ended."""


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
    """The part of `size` bytes that a Range asks for; None: all of it, also where the header
    is one we do not know, as HTTP has it."""
    found = _ASKED.fullmatch(header.strip()) if header else None
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
    """The part of a file that a Content-Range says is sent; `*` says that nothing is left to
    send, since no range that has a first and a last byte is empty."""
    if nothing := _NOTHING.fullmatch(header.strip()):
        total = int(nothing[1])
        return ByteRange(total, 0, total)
    found = _SENT.fullmatch(header.strip())
    first, last, total = map(int, found.groups()) if found else (1, 0, 0)
    if not first <= last < total:
        raise UsageError("Content-Range must be: bytes FIRST-LAST/TOTAL, or bytes */TOTAL")
    return ByteRange(first, last - first + 1, total)


def etag_of(found: os.stat_result) -> str:
    """Another one whenever a file was changed."""
    return f'"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"'
