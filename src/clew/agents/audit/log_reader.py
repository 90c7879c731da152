"""Read the lines of an audit log in order, across rotations and restarts of either side.

After a rotation, the old file is read to its end by its open descriptor, then the files between,
then the new one. If a file is gone, was truncated or replaced before it was read, that is a gap.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from clew.agents.audit.audit_log_files import (
    HEAD_BYTES,
    LogFile,
    find_position,
    hash_first_line,
    list_files,
    open_same_file,
)
from clew.agents.audit.checkpoint import Position
from clew.store.errors import from_os
from clew.witness.kubernetes_audit.audit_event import MAX_EVENT_BYTES

_LOG = logging.getLogger("clew.agents")
_CHUNK_BYTES = 1 << 20
LOST = "a part of the audit log"


class Line(NamedTuple):
    """A line, or why something of the log was not read; and where the next one begins."""

    text: bytes
    gap: str
    then: Position


class LogReader:
    """Reads one log from a position on."""

    def __init__(self, log: Path, position: Position | None) -> None:
        self._log = log
        self._position = position
        self._file: LogFile | None = None
        self._stream: IO[bytes] | None = None
        self._rest = b""
        """Read, and not a complete line yet."""
        self._skipping = False
        """Within a line that is too long."""

    def read_available(self) -> Iterator[Line]:
        """The complete lines that are there now."""
        while self._stream is not None or (yield from self._open_next()):
            yield from self._read_to_end()
            if not self._is_finished():
                return
            yield from self._read_to_end()  # what was written between the end and the rotation
            yield from self._close()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    # -- files

    def _open_next(self) -> Generator[Line, None, bool]:
        """Open the next file, if there is one; the value of the generator says so."""
        files = list_files(self._log)
        if self._file is None and self._position is None:
            return bool(files) and (yield from self._open(files[0], 0))
        if self._file is None and self._position is not None:
            found = find_position(files, self._position)
            if found is not None:
                return (yield from self._open(found, self._position.offset))
            if not files:
                return False
            at = Position(files[0].device, files[0].inode)
            yield Line(b"", "the file that was read last is gone or was replaced", at)
            return (yield from self._open(files[0], 0))
        assert self._file is not None
        known = [(one.device, one.inode) for one in files]
        key = (self._file.device, self._file.inode)
        if key in known:
            later = files[known.index(key) + 1 :]
        else:
            later = [one for one in files if one.last > self._file.last or one.path == self._log]
        if not later:
            return False
        if key not in known and not any(one.is_compressed for one in later):
            at = Position(later[0].device, later[0].inode)
            yield Line(b"", "rotated files were deleted; some may not have been read", at)
        return (yield from self._open(later[0], 0))

    def _open(self, file: LogFile, offset: int) -> Generator[Line, None, bool]:
        try:
            stream = open_same_file(file)
            first = hash_first_line(stream.read(HEAD_BYTES))
            stream.seek(offset)
        except (OSError, EOFError) as error:
            is_gone = isinstance(error, FileNotFoundError)
            if is_gone and self._has(file):  # under another name: it was rotated just now
                return (yield from self._open_next())
            if file.path == self._log and isinstance(error, OSError) and not is_gone:
                raise from_os(error, doing=f"read {file.path}") from error
            self._file, self._position = file, Position(file.device, file.inode)
            gap = f"{file.path.name} cannot be read: {type(error).__name__}"
            yield Line(b"", gap, self._position)
            return (yield from self._open_next())
        _LOG.info("reading %s from %d", file.path, offset)
        self._file, self._stream, self._rest = file, stream, b""
        self._position = Position(file.device, file.inode, offset, first)
        return True

    def _has(self, file: LogFile) -> bool:
        return any(one[1:3] == file[1:3] for one in list_files(self._log))

    def _is_finished(self) -> bool:
        """Whether nothing more is written to the open file: it is not the log any more."""
        assert self._file is not None
        if self._file.is_compressed:
            return True
        try:
            status = os.stat(self._log)
        except FileNotFoundError:
            return False  # between two steps of a rotation
        return (status.st_dev, status.st_ino) != (self._file.device, self._file.inode)

    def _close(self) -> Iterator[Line]:
        assert self._position is not None
        if self._rest or self._skipping:
            self._position = self._moved(len(self._rest))
            yield Line(b"", "a file ends within a line", self._position)
        self._rest, self._skipping = b"", False
        self.close()

    # -- lines

    def _read_to_end(self) -> Iterator[Line]:
        assert self._stream is not None
        assert self._file is not None
        yield from self._check_truncation()
        while chunk := self._read_chunk():
            lines = (self._rest + chunk).split(b"\n")
            self._rest = lines.pop()
            for line in lines:
                self._position = self._moved(len(line) + 1)
                if self._skipping or len(line) > MAX_EVENT_BYTES:
                    self._skipping = False
                    gap = f"a line has more than {MAX_EVENT_BYTES} bytes"
                    yield Line(b"", gap, self._position)
                elif line.strip():
                    yield Line(line, "", self._position)
            if len(self._rest) > MAX_EVENT_BYTES:
                self._position = self._moved(len(self._rest))
                self._rest, self._skipping = b"", True

    def _read_chunk(self) -> bytes:
        assert self._stream is not None
        try:
            return self._stream.read(_CHUNK_BYTES)
        except (OSError, EOFError) as error:
            _LOG.error("the audit log cannot be read: %s", error)
            return b""

    def _check_truncation(self) -> Iterator[Line]:
        assert self._stream is not None
        assert self._file is not None
        assert self._position is not None
        if self._file.is_compressed:
            return
        read = self._position.offset + len(self._rest)
        if os.fstat(self._stream.fileno()).st_size < read:
            self._stream.seek(0)
            self._rest, self._skipping = b"", False
            self._position = Position(self._file.device, self._file.inode)
            yield Line(b"", "the file was truncated; what was not read is lost", self._position)

    def _moved(self, size: int) -> Position:
        """The position after the next `size` bytes."""
        assert self._position is not None
        assert self._stream is not None
        old = self._position
        return Position(old.device, old.inode, old.offset + size, old.first_line or self._first())

    def _first(self) -> str:
        """The digest of the first line of the open file, which had none when it was opened."""
        assert self._file is not None
        assert self._stream is not None
        if self._file.is_compressed:
            return ""
        return hash_first_line(os.pread(self._stream.fileno(), HEAD_BYTES, 0))
