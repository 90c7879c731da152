"""Whether the command wants its input yet.

Input is copied only once some process of the command was seen waiting for it: so a command
that never reads takes nothing from whoever shares the pipe with it (the lines of a shell's
`while read`, say).
"""

from __future__ import annotations

import threading

_READS = {"0", "17", "19", "295", "327"}  # read, pread64, readv, preadv, preadv2
_WAITS = {
    "7",
    "23",
    "232",
    "270",
    "271",
    "281",
}  # poll, select, epoll_wait, pselect6, ppoll, epoll_pwait
_PAUSE = 0.01


class Interest:
    """Asks the kernel what the command's processes are waiting for, until one waits for input."""

    def __init__(self) -> None:
        self._pids: set[int] = set()
        self._lock = threading.Lock()
        self._seen = False

    def add(self, pid: int) -> None:
        with self._lock:
            self._pids.add(pid)

    def drop(self, pid: int) -> None:
        with self._lock:
            self._pids.discard(pid)

    def wait(self, over: threading.Event) -> bool:
        """Wait until input is wanted; false when the command ended first."""
        while not self._seen:
            with self._lock:
                pids = tuple(self._pids)
            self._seen = any(_wants_input(pid) for pid in pids)
            if not self._seen and over.wait(_PAUSE):
                return False
        return True


def _wants_input(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/syscall") as file:
            words = file.read().split()
    except OSError:
        return False
    if not words:
        return False
    return words[0] in _WAITS or (words[0] in _READS and words[1] == "0x0")
