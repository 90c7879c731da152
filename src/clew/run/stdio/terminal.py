"""A pseudo-terminal between the user's terminal and the command, so that output is captured."""

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

from clew.run.stdio.output_counter import OutputPosition

_BLOCK = 1 << 16
_SIZE = struct.pack("HHHH", 0, 0, 0, 0)


class Terminal(Struct, eq=False):
    master: int
    slave: int
    name: str
    both_ways: bool
    """stdin is a terminal too: then this becomes the command's controlling terminal."""
    shown: int
    """The descriptor of the user's terminal: 1 or 2."""
    typed: int = 0
    """Number of bytes typed."""
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
            disable_output_processing(slave)  # the user's terminal converts newlines already
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
        ended: threading.Event,
        position: OutputPosition,
        number: int,
    ) -> Callable[[], None]:
        """A function for a thread: copies output to the user and keys to the command."""

        def copy() -> None:
            sources = [self.master, 0] if self.both_ways else [self.master]
            while True:
                ready, _, _ = select.select(sources, [], [], 0.05)
                if self.master in ready:
                    try:
                        data = position.read_output(number, self.master)
                    except OSError:  # the last process that held it has ended
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
                if not ready and ended.is_set():
                    break
            os.close(self.master)

        return copy

    def restore(self) -> None:
        if self._saved is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)
        if self._old_winch is not None:
            signal.signal(signal.SIGWINCH, self._old_winch)


def disable_output_processing(slave: int) -> None:
    """Turn output processing off: bytes pass unchanged."""
    modes = termios.tcgetattr(slave)
    modes[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, modes)
