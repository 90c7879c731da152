"""The output of a process, in two files of limited size: the newer part and the older part."""

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from clew.kube.backend.log_positions import LogChunk

_MAX_BYTES = 4 << 20
"""The limit for each file."""
_POLL_SECONDS = 0.2
_READ_BYTES = 64 << 10
_POSITION = re.compile(r"(\d{1,20})_(\d{1,15})")


class ProcessLog:
    """The log of one resource; it goes on over restarts."""

    def __init__(self, path: Path, *, max_bytes: int = _MAX_BYTES) -> None:
        self._path = path
        self._older = path.with_name(f"{path.name}.1")
        self._max_bytes = max_bytes
        self._lock = threading.Lock()

    def append(self, data: bytes) -> None:
        with self._lock:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            opener = lambda name, flags: os.open(name, flags, 0o600)  # noqa: E731
            with open(self._path, "ab", opener=opener) as file:
                file.write(data)
                size = file.tell()
            if size > self._max_bytes:
                self._path.replace(self._older)

    def read(self, tail: int | None = None) -> bytes:
        """All of it, or its last lines."""
        return self._read_tail(tail)[0]

    async def follow(
        self, tail: int | None, is_over: Callable[[], bool], after: str | None = None
    ) -> AsyncIterator[LogChunk]:
        """The log, and what is added to it until it is over. `after`: see `Backend`."""
        match = _POSITION.fullmatch(after or "")
        if match:
            position = int(match[1]), int(match[2])
        else:
            data, position = await asyncio.to_thread(self._read_tail, tail)
            for start in range(0, len(data), _READ_BYTES):
                end = position[1] - len(data) + start + _READ_BYTES
                # Within the older file there is no position: then it all comes again.
                at = position[0], max(0, min(end, position[1]))
                yield LogChunk(data[start : start + _READ_BYTES], _format(at))
        while True:
            over = is_over()
            found, position = await asyncio.to_thread(self._read_from, position)
            if found:
                yield LogChunk(found, _format(position))
            elif over:
                return
            else:
                await asyncio.sleep(_POLL_SECONDS)

    def _read_tail(self, tail: int | None) -> tuple[bytes, tuple[int, int]]:
        """The last lines, and the position after them: the file that is written, and its size."""
        with self._lock:
            older = self._older.read_bytes() if self._older.exists() else b""
            try:
                with self._path.open("rb") as file:
                    inode, newer = os.fstat(file.fileno()).st_ino, file.read()
            except FileNotFoundError:
                inode, newer = 0, b""
        return _last_lines(older + newer, tail), (inode, len(newer))

    def _read_from(self, position: tuple[int, int]) -> tuple[bytes, tuple[int, int]]:
        """What follows a position. If the files were exchanged meanwhile, the rest of the older
        file comes first."""
        inode, offset = position
        with self._lock:
            for path in (self._older, self._path):
                try:
                    with path.open("rb") as file:
                        current = os.fstat(file.fileno()).st_ino
                        if current != inode and path is not self._path:
                            continue
                        file.seek(offset if current == inode else 0)
                        data = file.read(_READ_BYTES)
                        if data or path is self._path:
                            return data, (current, file.tell())
                except FileNotFoundError:
                    continue
        return b"", position

    def delete(self) -> None:
        with self._lock:
            self._path.unlink(missing_ok=True)
            self._older.unlink(missing_ok=True)


def _last_lines(data: bytes, tail: int | None) -> bytes:
    if tail is None:
        return data
    lines = data.splitlines(keepends=True)
    return b"".join(lines[-tail:] if tail > 0 else [])


def _format(position: tuple[int, int]) -> str:
    return f"{position[0]}_{position[1]}"
