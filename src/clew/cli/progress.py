"""How far a transfer is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clew.cli.output import remark, size

BETWEEN = 10.0
"""Seconds between two lines where there is no terminal."""
_WIDTH = 30


@contextmanager
def progress(verb: str) -> Iterator[Callable[[int, int], None]]:
    """Something to call with the bytes that are done, and of how many; on stderr."""
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
            sys.stderr.write(f"\r\x1b[K{verb} {bar} {size(done)} of {size(total)}")
            sys.stderr.flush()
            drawn = True
        elif time.monotonic() - last > BETWEEN:
            last = time.monotonic()
            remark(f"{verb}: {size(done)} of {size(total)}")

    try:
        yield draw
    finally:
        if drawn:  # what is said next stands alone
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
