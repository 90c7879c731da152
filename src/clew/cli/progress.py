"""The progress of a transfer on stderr: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clew.cli.output import format_size, print_message

LINE_INTERVAL = 10.0
"""Seconds between two lines where there is no terminal."""
_WIDTH = 30


@contextmanager
def progress(verb: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function to call with the bytes transferred so far and the total."""
    terminal = sys.stderr.isatty()
    last = 0.0
    drawn = False

    def draw(done: int, total: int) -> None:
        nonlocal last, drawn
        if not total:
            return
        last = last or time.monotonic()
        if terminal:
            full = _WIDTH * done // total
            bar = "━" * full + " " * (_WIDTH - full)
            sys.stderr.write(f"\r\x1b[K{verb} {bar} {format_size(done)} of {format_size(total)}")
            sys.stderr.flush()
            drawn = True
        elif time.monotonic() - last > LINE_INTERVAL:
            last = time.monotonic()
            print_message(f"{verb}: {format_size(done)} of {format_size(total)}")

    try:
        yield draw
    finally:
        if drawn:  # erase the bar before other output
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
