"""Show long output with a pager, such as `less`, on a terminal.

The pager starts with the first line that is printed. `less` gets `-FRX` through its variable LESS,
unless the user has set it: quit if the text fits on one screen, keep colours, keep the text on the
screen.
"""

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from clew import settings

_LESS = "FRX"


@contextmanager
def page_output() -> Iterator[None]:
    """Send what the body prints to the user's pager; stdout must be a terminal.

    Messages on a terminal go there too: they would be lost below the pager.
    """
    command = _find_pager()
    if command is None:
        yield
        return
    pager = _Pager(command)
    stream = _PagedText(io.BufferedWriter(pager), encoding=sys.stdout.encoding, errors="replace")
    before = sys.stdout, sys.stderr
    sys.stdout = stream
    if sys.stderr.isatty():
        sys.stderr = stream
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        with suppress(click.exceptions.Exit):  # the user quit the pager before the end
            stream.close()


def _find_pager() -> list[str] | None:
    words = shlex.split(settings.load().pager)
    if words in ([], ["cat"]) or shutil.which(words[0]) is None:
        return None
    return words


class _PagedText(io.TextIOWrapper):
    """Text for a pager; formatted as for the terminal on which the pager shows it."""

    def isatty(self) -> bool:
        return True


class _Pager(io.RawIOBase):
    """Starts the pager at the first write, and waits for its end when closed."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self._process is None:
            environment = {"LESS": _LESS, **os.environ}
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, env=environment, bufsize=0
            )
        assert self._process.stdin is not None
        try:
            return self._process.stdin.write(data) or 0
        except BrokenPipeError:
            raise click.exceptions.Exit(0) from None  # the user has seen enough

    def close(self) -> None:
        if self._process is not None and not self.closed:
            assert self._process.stdin is not None
            with suppress(BrokenPipeError):
                self._process.stdin.close()
            handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the pager
            try:
                self._process.wait()
            finally:
                signal.signal(signal.SIGINT, handler)
        super().close()
