"""Files as another process sees them."""

import ctypes
import os
import struct

from clew.agents.node.kernel.libc import system_call

_OPENAT2 = 437
_IN_ROOT, NO_SYMLINKS = 0x10, 0x04
_EXITING = 0x4


def open_in_root(pid: int, path: bytes, flags: int = os.O_RDONLY, *, resolve: int = 0) -> int:
    """Open a path below the root of a process, out of which no link leads. `resolve`: further
    restrictions of openat2."""
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
    try:
        how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, _IN_ROOT | resolve)
        words = ctypes.c_char_p(path), ctypes.c_char_p(how)
        return system_call(_OPENAT2, root, *words, len(how))
    finally:
        os.close(root)


def process_status(pid: int) -> list[bytes]:
    """The fields of `/proc/PID/stat` after the name, which may hold anything."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read(4096).rpartition(b")")[2].split()


def parent_of(pid: int) -> int:
    return int(process_status(pid)[1])


def is_ending(pid: int) -> bool:
    """Whether a process is about to end, or waits for its parent to notice."""
    return bool(int(process_status(pid)[6]) & _EXITING)
