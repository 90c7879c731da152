"""The files of an audit log: the one that is written, and those that were rotated, in order.

The API server rotates `audit.log` to `audit-TIME.log`, perhaps compresses that, and deletes the
oldest. Other programs rotate it to `audit.log.1` and so on.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, NamedTuple, cast

from blake3 import blake3

from clew.agents.audit.checkpoint import Position

_ROTATED_AT = re.compile(r"-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)\.(\d{3})\.")
HEAD_BYTES = 1 << 16
"""How much of a long first line is hashed."""


class LogFile(NamedTuple):
    """A file of the log. `last`: when it was rotated, or written last."""

    path: Path
    device: int
    inode: int
    last: int

    @property
    def is_compressed(self) -> bool:
        return self.path.suffix == ".gz"


def list_files(log: Path) -> list[LogFile]:
    """The files of the log that are there, oldest first; the one that is written comes last."""
    found = [one for path in _candidates(log) if (one := _describe(path)) is not None]
    return sorted(found, key=lambda one: (one.path == log, one.last, one.path.name))


def _candidates(log: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError):
        for entry in os.scandir(log.parent):
            name = entry.name
            rotated = name.startswith(f"{log.stem}-") and f"{log.suffix}" in name[len(log.stem) :]
            if (rotated or name == log.name or name.startswith(f"{log.name}.")) and entry.is_file():
                yield log.parent / name


def _describe(path: Path) -> LogFile | None:
    with suppress(FileNotFoundError):
        status = path.stat()
        last = _rotation_time(path.name) or status.st_mtime_ns
        return LogFile(path, status.st_dev, status.st_ino, last)
    return None


def _rotation_time(name: str) -> int | None:
    match = _ROTATED_AT.search(name)
    if match is None:
        return None
    time = datetime.strptime(match[1], "%Y-%m-%dT%H-%M-%S").replace(tzinfo=UTC)
    return int(time.timestamp()) * 1_000_000_000 + int(match[2]) * 1_000_000


def open_file(file: LogFile) -> IO[bytes]:
    """The bytes of a file of the log, as they were written."""
    if file.is_compressed:
        return cast(IO[bytes], gzip.open(file.path, "rb"))
    return open(file.path, "rb")


def open_same_file(file: LogFile) -> IO[bytes]:
    """The same; FileNotFoundError if the name leads to another file now."""
    stream = open_file(file)
    status = os.fstat(stream.fileno())
    if (status.st_dev, status.st_ino) != (file.device, file.inode):
        stream.close()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file.path))
    return stream


def hash_first_line(head: bytes) -> str:
    """The digest of a file's first line, which its first `HEAD_BYTES` begin with; empty if the line
    is not complete."""
    line, end, _ = head.partition(b"\n")
    if not end and len(head) < HEAD_BYTES:
        return ""
    return blake3(line).hexdigest(length=16)


def find_position(files: list[LogFile], position: Position) -> LogFile | None:
    """The file that a position is in, where it still is: by its inode, or as a compressed copy."""
    same = [one for one in files if (one.device, one.inode) == (position.device, position.inode)]
    compressed = [one for one in files if one.is_compressed and one not in same]
    for file in (*same, *compressed):
        with suppress(OSError, EOFError), open_file(file) as stream:
            first = hash_first_line(stream.read(HEAD_BYTES))
            if position.first_line and first != position.first_line:
                continue
            if file in same and not position.first_line and position.offset == 0:
                return file
            if not position.first_line:
                continue
            if file.is_compressed or file.path.stat().st_size >= position.offset:
                return file
    return None
