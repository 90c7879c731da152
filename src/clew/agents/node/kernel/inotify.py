"""Directories that appear and disappear, by inotify: it also works on cgroups."""

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from clew.agents.node.kernel.libc import call

_CREATE, _DELETE, _SELF_DELETED = 0x100, 0x200, 0x400
_OVERFLOW, _DIRECTORY = 0x4000, 0x4000_0000
_ONLY_DIRECTORY = 0x0100_0000
_EVENT = struct.Struct("=iIII")


class DirectoryChange(NamedTuple):
    directory: bytes
    """Empty: events were lost."""
    created: bytes = b""
    """The name of a new directory in it."""
    removed: bytes = b""
    """The name of a directory that was in it."""


class DirectoryWatch:
    """Watches directories, not what is below them."""

    def __init__(self) -> None:
        self.descriptor = call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        self._paths: dict[int, bytes] = {}

    def add(self, directory: bytes) -> None:
        """Watch a directory; OSError if it is gone."""
        mask = _CREATE | _DELETE | _SELF_DELETED | _ONLY_DIRECTORY
        self._paths[call("inotify_add_watch", self.descriptor, directory, mask)] = directory

    def read(self) -> Iterator[DirectoryChange]:
        """What changed since the last call."""
        try:
            buffer = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:
            return
        offset = 0
        while offset < len(buffer):
            number, mask, _, length = _EVENT.unpack_from(buffer, offset)
            offset += _EVENT.size + length
            name = buffer[offset - length : offset].rstrip(b"\0")
            if mask & _OVERFLOW:
                yield DirectoryChange(b"")
            elif mask & _SELF_DELETED:
                self._paths.pop(number, None)
            elif mask & _DIRECTORY and number in self._paths:
                if mask & _CREATE:
                    yield DirectoryChange(self._paths[number], created=name)
                else:
                    yield DirectoryChange(self._paths[number], removed=name)

    def close(self) -> None:
        os.close(self.descriptor)
