"""What a process printed, kept in two files of limited size: the newer part and the older part."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

_MAX_BYTES = 4 << 20
"""Of each file."""
_POLL_SECONDS = 0.2
_READ_BYTES = 64 << 10


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
        data = self._read_all()
        if tail is None:
            return data
        lines = data.splitlines(keepends=True)
        return b"".join(lines[-tail:] if tail > 0 else [])

    def _read_all(self) -> bytes:
        with self._lock:
            return b"".join(
                path.read_bytes() for path in (self._older, self._path) if path.exists()
            )

    async def follow(self, tail: int | None, is_over: Callable[[], bool]) -> AsyncIterator[bytes]:
        """The log, and what is added to it until it is over."""
        position = self._end()
        data = await asyncio.to_thread(self.read, tail)
        if data:
            yield data
        while True:
            over = is_over()
            found, position = await asyncio.to_thread(self._read_from, position)
            if found:
                yield found
            elif over:
                return
            else:
                await asyncio.sleep(_POLL_SECONDS)

    def _end(self) -> tuple[int, int]:
        """The file that is written, and its size."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return 0, 0
        return found.st_ino, found.st_size

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
