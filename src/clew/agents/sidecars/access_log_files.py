"""The files of one sidecar's access log, in a directory that is not trusted.

Every name is opened relative to the open directory and without following links, and only regular
files are read: a link, a pipe or a device in their place is not touched. The directory stays open,
so the log can be read until the end when Kubernetes removes the Pod meanwhile.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from clew.agents.sidecars.traffic_sidecar_names import CONFIRMED, DROPPED, LOG

_ROTATED = re.compile(re.escape(LOG) + r"\.([0-9]{1,9})")
_CURRENT = 10**9
_MAX_COUNT_BYTES = 18
_MAX_FILES = 10_000
"""Names that are looked at; the sidecar itself keeps far fewer."""


class LogFile(NamedTuple):
    """A file of the log; a larger number is newer, and the one that is written has the largest."""

    number: int
    name: str
    inode: int
    size: int


class LogDirectory:
    def __init__(self, path: Path) -> None:
        """Raises OSError if it is not there."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._directory = os.open(path, flags)

    def close(self) -> None:
        os.close(self._directory)

    def list_files(self) -> list[LogFile]:
        """Oldest first."""
        return sorted(self._find_files())

    def read(self, file: LogFile, offset: int, size: int) -> bytes:
        descriptor = self._open(file.name)
        try:
            if os.fstat(descriptor).st_ino != file.inode:  # it was rotated meanwhile
                return b""
            return os.pread(descriptor, size, offset)
        finally:
            os.close(descriptor)

    def delete(self, file: LogFile) -> None:
        with suppress(FileNotFoundError):
            os.unlink(file.name, dir_fd=self._directory)

    def confirm(self, inode: int, offset: int) -> None:
        """Tell the sidecar that all up to here is safe. It may be gone already."""
        part = f".{CONFIRMED}.part"
        with suppress(OSError):
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=self._directory)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(part, flags, 0o644, dir_fd=self._directory)
            try:
                os.write(descriptor, f"{inode} {offset}\n".encode())
            finally:
                os.close(descriptor)
            os.rename(part, CONFIRMED, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def count_dropped(self) -> int:
        """How many files the sidecar deleted unread."""
        try:
            descriptor = self._open(DROPPED)
        except OSError:
            return 0
        try:
            text = os.read(descriptor, _MAX_COUNT_BYTES).strip()
        finally:
            os.close(descriptor)
        return int(text) if text.isdigit() else 0

    def _open(self, name: str) -> int:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=self._directory)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise FileNotFoundError(name)
        return descriptor

    def _find_files(self) -> Iterator[LogFile]:
        with os.scandir(self._directory) as entries:
            names = [entry.name for entry in islice(entries, _MAX_FILES)]
        for name in names:
            match = _ROTATED.fullmatch(name)
            if match is None and name != LOG:
                continue
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=self._directory, follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    number = int(match[1]) if match else _CURRENT
                    yield LogFile(number, name, found.st_ino, found.st_size)
