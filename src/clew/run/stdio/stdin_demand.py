"""Find out whether the command reads its stdin yet.

Input is copied only after a process of the command was seen to wait for it. So a command that never
reads takes nothing from others that share the pipe, such as a shell's `while read` loop.
"""

import os
import threading

_PAUSE = 0.01

# System calls that read from a descriptor, with its argument number; and calls that wait for any.
_READS = {
    False: {  # read, pread64, readv, preadv, preadv2, recvfrom, recvmsg, recvmmsg, splice, tee, …
        **dict.fromkeys((0, 17, 19, 295, 327, 45, 47, 299, 275, 276, 326), 1),
        40: 2,  # sendfile
    },
    True: {  # the same of 32-bit programs
        **dict.fromkeys((3, 145, 180, 333, 378, 371, 372, 337, 313, 315, 377), 1),
        187: 2,
        239: 2,
    },
}
_WAITS = {  # poll, select, epoll_wait, pselect6, ppoll, epoll_pwait, epoll_pwait2
    False: {7, 23, 232, 270, 271, 281, 441},
    True: {168, 82, 142, 256, 308, 413, 309, 414, 319, 441, 102},
}


class StdinDemand:
    """Polls /proc until a thread of the command waits for input."""

    def __init__(self) -> None:
        self._pids: set[int] = set()
        self._lock = threading.Lock()
        self._seen = False
        self._pipe = ""

    def watch(self, descriptor: int) -> None:
        """Set the pipe that is the command's stdin."""
        self._pipe = os.readlink(f"/proc/self/fd/{descriptor}")

    def add(self, pid: int) -> None:
        with self._lock:
            self._pids.add(pid)

    def drop(self, pid: int) -> None:
        with self._lock:
            self._pids.discard(pid)

    def wait(self, over: threading.Event) -> bool:
        """Wait until the command reads its input; False if it ended first."""
        while not self._seen:
            with self._lock:
                pids = tuple(self._pids)
            self._seen = any(self._wants_input(pid) for pid in pids)
            if not self._seen and over.wait(_PAUSE):
                return False
        return True

    def _wants_input(self, pid: int) -> bool:
        try:
            threads = os.listdir(f"/proc/{pid}/task")
            return any(self._waits_for_input(pid, thread) for thread in threads)
        except OSError:  # it has just ended
            return False

    def _waits_for_input(self, pid: int, thread: str) -> bool:
        with open(f"/proc/{pid}/task/{thread}/syscall") as file:
            words = file.read().split()
        if len(words) < 7:  # it is running
            return False
        call, is_32_bit = int(words[0]), _is_32_bit(pid)
        argument = _READS[is_32_bit].get(call)
        if argument is not None:
            return self._is_input(pid, str(int(words[argument], 16)))
        if call not in _WAITS[is_32_bit]:
            return False
        return any(self._is_input(pid, name) for name in os.listdir(f"/proc/{pid}/fd"))

    def _is_input(self, pid: int, descriptor: str) -> bool:
        try:
            return os.readlink(f"/proc/{pid}/fd/{descriptor}") == self._pipe
        except OSError:
            return False


def _is_32_bit(pid: int) -> bool:
    """Whether this is a 32-bit program: its system calls have other numbers."""
    with open(f"/proc/{pid}/exe", "rb") as file:
        return file.read(5)[4:] == b"\x01"
