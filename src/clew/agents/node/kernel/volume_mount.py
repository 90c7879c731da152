"""The agent's own mount of a volume: where handles become paths, and files are read.

It is a detached copy of a container's mount: no other process sees it, accesses through it make no
events, and it shows the volume under the root `/` whatever is mounted where. Files are opened by
their handles, so a symbolic link on the volume leads nowhere.
"""

import ctypes
import errno
import os
import struct
from collections import OrderedDict
from typing import Final

from clew.agents.node.kernel.libc import AT_EMPTY_PATH, call
from clew.witness.volumes.accesses import FileState

_MAX_PATHS = 50_000
_STATX_BYTES: Final = 256
_BASIC_AND_BIRTH: Final = 0xFFF
_TIME = struct.Struct("=qI4x")
_MAX_HANDLE = 128


def read_state(descriptor: int) -> FileState:
    """The state of an open file."""
    buffer = bytes(_STATX_BYTES)
    call("statx", descriptor, b"", AT_EMPTY_PATH, _BASIC_AND_BIRTH, buffer)
    mode = struct.unpack_from("=H", buffer, 28)[0]
    size = struct.unpack_from("=Q", buffer, 40)[0]
    times = [_TIME.unpack_from(buffer, offset) for offset in (80, 96, 112)]
    born, changed, modified = (seconds * 10**9 + part for seconds, part in times)
    links = struct.unpack_from("=I", buffer, 16)[0]
    return FileState(
        size=size, mtime=modified, ctime=changed, mode=mode, born=max(born, 0), links=links
    )


def mount_id(descriptor: int) -> int:
    """The id of the mount through which a file is open."""
    with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
        for line in file:
            if line.startswith(b"mnt_id:"):
                return int(line[7:])
    raise OSError(errno.ENOTSUP, "the kernel does not tell the mount of an open file")


class VolumeMount:
    """A detached copy of a mount."""

    def __init__(self, root: int, *, prefix: bytes = b"") -> None:
        """`root`: its root directory, which this closes. `prefix`: the part of the volume that is
        mounted, if not all is (`subPath`)."""
        self.prefix = prefix
        self._root = root
        self.device = os.fstat(self._root).st_dev
        self._root_handle = handle_of(self._root)
        self._paths: OrderedDict[bytes, bytes | None] = OrderedDict()

    @property
    def root(self) -> int:
        return self._root

    def close(self) -> None:
        os.close(self._root)

    def directory_path(self, handle: bytes) -> bytes | None:
        """The path of a directory within the volume; None if it is gone or not on this mount."""
        if handle in self._paths:
            self._paths.move_to_end(handle)
            return self._paths[handle]
        path = self.resolve(handle)
        self._paths[handle] = path
        if len(self._paths) > _MAX_PATHS:
            self._paths.popitem(last=False)
        return path

    def forget_paths(self) -> None:
        """A directory was renamed: the paths below it are others now."""
        self._paths.clear()

    def open(self, handle: bytes, flags: int, path: bytes = b"") -> int:
        """Open a file by its handle; OSError if it is gone. `path`: where it was, for a mount
        without handles."""
        size = len(handle) - 4
        return call("open_by_handle_at", self._root, struct.pack("=I", size) + handle, flags)

    def state(self, handle: bytes) -> FileState | None:
        """The state of a file; None if it is gone."""
        try:
            descriptor = self.open(handle, os.O_PATH)
        except OSError:
            return None
        try:
            return read_state(descriptor)
        finally:
            os.close(descriptor)

    def resolve(self, handle: bytes) -> bytes | None:
        """The same, from the kernel. Safe to use from any thread."""
        if handle == self._root_handle:
            return self.prefix
        try:
            descriptor = self.open(handle, os.O_PATH)
        except OSError:
            return None
        try:
            path = os.readlink(b"/proc/self/fd/%d" % descriptor)
        finally:
            os.close(descriptor)
        # What is outside of the mount has the path `/`, what was removed ends in ` (deleted)`.
        if path == b"/" or (path.endswith(b" (deleted)") and not self._exists(path)):
            return None
        return self.prefix + path

    def _exists(self, path: bytes) -> bool:
        try:
            os.stat(path.lstrip(b"/"), dir_fd=self._root, follow_symlinks=False)
        except OSError:
            return False
        return True


def handle_of(descriptor: int) -> bytes:
    """The handle of an open file, as events have it."""
    buffer = struct.pack("=Ii", _MAX_HANDLE, 0) + bytes(_MAX_HANDLE)
    mount = ctypes.c_int()
    call("name_to_handle_at", descriptor, b"", buffer, ctypes.byref(mount), AT_EMPTY_PATH)
    size = struct.unpack_from("=I", buffer)[0]
    return buffer[4 : 8 + size]
