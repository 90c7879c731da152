"""Groups of fanotify: the accesses to marked mounts, and the names that change on a file system.

Events name a file by the handle of its directory, its name there and its own handle, as they were
at the time of the event. Descriptors (the older form) would show a renamed file under its new name.
"""

import errno
import os
import struct
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from clew.agents.node.kernel.libc import AT_FDCWD, call

ACCESS: Final = 0x1
MODIFY: Final = 0x2
CLOSE_WRITE: Final = 0x8
CLOSE_NOWRITE: Final = 0x10
OPEN: Final = 0x20
DELETE: Final = 0x200
OVERFLOW: Final = 0x4000
RENAME: Final = 0x1000_0000
ON_DIRECTORY: Final = 0x4000_0000

ACCESSES: Final = ACCESS | MODIFY | CLOSE_WRITE | CLOSE_NOWRITE | OPEN
NAMES: Final = DELETE | RENAME | ON_DIRECTORY

_CLOEXEC, _NONBLOCK = 0x1, 0x2
_REPORT = 0x200 | 0x400 | 0x800 | 0x1000  # handles of the file, its directory, the name, the target
_REPORT_PROCESS = 0x80
_ADD, _MOUNT, _FILESYSTEM, _IGNORE = 0x1, 0x10, 0x100, 0x400
_SURVIVES_CHANGES, _EVICTABLE, _ONLY_DIRECTORY = 0x40, 0x200, 0x8

_METADATA = struct.Struct("=IBBHQii")
_INFORMATION = struct.Struct("=BBH")
_FSID_BYTES = 8
_HANDLE = struct.Struct("=Ii")
_DESCRIPTOR = struct.Struct("=i")
_OF_FILE, _OF_DIRECTORY, _OF_PROCESS, _OLD_NAME, _NEW_NAME = 1, 2, 4, 10, 12
_READ_BYTES = 1 << 18
_READ_BYTES_WITH_PROCESSES = 1 << 16


class FileEvent(NamedTuple):
    """One event. Handles are the kernel's `struct file_handle` without its length."""

    mask: int
    pid: int
    directory: bytes = b""
    name: bytes = b""
    handle: bytes = b""
    new_directory: bytes = b""
    new_name: bytes = b""
    process: int = -1
    """A descriptor of the process, to be closed by the reader; negative: it has ended."""


class EventGroup:
    """One queue of events. The kernel keeps a limited number and reports an overflow."""

    def __init__(self, *, processes: bool = False) -> None:
        """`processes`: events have a descriptor of their process."""
        flags = _CLOEXEC | _NONBLOCK | _REPORT | (_REPORT_PROCESS if processes else 0)
        self.descriptor = call("fanotify_init", flags, os.O_RDONLY)
        self._size = _READ_BYTES_WITH_PROCESSES if processes else _READ_BYTES

    def mark_mount(self, descriptor: int) -> None:
        """Report accesses through the mount of this open directory or file."""
        self._mark(_ADD | _MOUNT, ACCESSES, descriptor)

    def mark_filesystem(self, descriptor: int) -> None:
        """Report names that are removed or changed on the whole file system."""
        self._mark(_ADD | _FILESYSTEM, NAMES, descriptor)

    def ignore_directory(self, descriptor: int) -> None:
        """Report names in this directory no longer, as long as the kernel remembers it."""
        self._mark(_ADD | _IGNORE | _SURVIVES_CHANGES | _EVICTABLE, NAMES, descriptor)

    def read(self) -> bytes:
        """The next events; none if the queue is empty."""
        try:
            return os.read(self.descriptor, self._size)
        except BlockingIOError:
            return b""

    def drain(self, most: int) -> bytes:
        """What is in the queue now, as far as so many reads give it."""
        return b"".join(islice(iter(self.read, b""), most))

    def close(self) -> None:
        os.close(self.descriptor)

    def _mark(self, flags: int, mask: int, descriptor: int) -> None:
        path = b"/proc/self/fd/%d" % descriptor  # descriptors of paths are not accepted as such
        call("fanotify_mark", self.descriptor, flags, mask, AT_FDCWD, path)


def parse_events(buffer: bytes) -> Iterator[FileEvent]:
    """The events of a buffer that a group gave."""
    offset = 0
    while offset + _METADATA.size <= len(buffer):
        length, _, _, start, mask, _, pid = _METADATA.unpack_from(buffer, offset)
        if length < _METADATA.size:
            raise OSError(errno.EPROTO, "an event of fanotify has no length")
        yield _parse_information(mask, pid, buffer[offset + start : offset + length])
        offset += length


def _parse_information(mask: int, pid: int, records: bytes) -> FileEvent:
    directory = name = handle = new_directory = new_name = b""
    process = -1
    offset = 0
    while offset + _INFORMATION.size <= len(records):
        kind, _, length = _INFORMATION.unpack_from(records, offset)
        if length < _INFORMATION.size:
            break
        if kind == _OF_PROCESS:
            process = _DESCRIPTOR.unpack_from(records, offset + _INFORMATION.size)[0]
            offset += length
            continue
        start = offset + _INFORMATION.size + _FSID_BYTES
        size, _ = _HANDLE.unpack_from(records, start)
        end = start + _HANDLE.size + size
        found = records[start + 4 : end]
        if kind == _OF_FILE:
            handle = found
        elif kind in (_OF_DIRECTORY, _OLD_NAME):
            directory, name = found, _name(records, end, offset + length)
        elif kind == _NEW_NAME:
            new_directory, new_name = found, _name(records, end, offset + length)
        offset += length
    return FileEvent(mask, pid, directory, name, handle, new_directory, new_name, process)


def _name(records: bytes, start: int, end: int) -> bytes:
    return records[start:end].partition(b"\0")[0]
