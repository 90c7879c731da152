"""A terminal between the user's and the command's: what is shown is also kept."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import threading
import tty
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from clew.run.stdio.read_progress import ReadProgress

_BLOCK = 1 << 16
_SIZE = struct.pack("HHHH", 0, 0, 0, 0)


class Terminal(Struct, eq=False):
    master: int
    slave: int
    name: str
    both_ways: bool
    """The user's input is a terminal too: then the command gets this one as its own."""
    shown: int
    """Where the user sees it: descriptor 1 or 2."""
    typed: int = 0
    """How many bytes of keys the command was given."""
    _saved: list[Any] | None = None
    _old_winch: Any = None

    @classmethod
    def open(cls) -> Terminal:
        master, slave = os.openpty()
        shown = 1 if os.isatty(1) else 2
        both = os.isatty(0) and os.isatty(1) and os.isatty(2)
        terminal = cls(master, slave, os.ttyname(slave), both, shown)
        termios.tcsetattr(slave, termios.TCSANOW, termios.tcgetattr(shown))
        terminal._resize()
        if both:
            terminal._saved = termios.tcgetattr(0)
            tty.setraw(0, termios.TCSADRAIN)
        else:
            plain_output(slave)  # the user's terminal turns newlines into line ends already
        if threading.current_thread() is threading.main_thread():
            terminal._old_winch = signal.signal(signal.SIGWINCH, lambda *_: terminal._resize())
        return terminal

    def _resize(self) -> None:
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(self.shown, termios.TIOCGWINSZ, _SIZE)
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def copy(
        self,
        keep: Callable[[bytes], object],
        over: threading.Event,
        reading: ReadProgress,
        number: int,
    ) -> Callable[[], None]:
        """What to run in a thread: the command's output to the user, the user's keys to it."""

        def copy() -> None:
            sources = [self.master, 0] if self.both_ways else [self.master]
            while True:
                ready, _, _ = select.select(sources, [], [], 0.05)
                if self.master in ready:
                    try:
                        data = reading.take(number, self.master)
                    except OSError:  # the last process that had it is gone
                        break
                    if not data:
                        break
                    keep(data)
                    with contextlib.suppress(OSError):
                        os.write(self.shown, data)
                if 0 in ready:
                    keys = os.read(0, _BLOCK)
                    if keys:
                        self.typed += len(keys)
                        os.write(self.master, keys)
                    else:
                        sources.remove(0)
                if not ready and over.is_set():
                    break
            os.close(self.master)

        return copy

    def restore(self) -> None:
        if self._saved is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)
        if self._old_winch is not None:
            signal.signal(signal.SIGWINCH, self._old_winch)


def plain_output(slave: int) -> None:
    """Let this terminal hand on what is written to it as it is."""
    modes = termios.tcgetattr(slave)
    modes[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, modes)
