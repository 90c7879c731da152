"""Say what is being done, and how long it took: a cluster that comes up in silence looks stuck."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Failed(Exception):
    """Something the user can act on; the message says what, and where to look."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """One line per step, written when it is done."""
    began = time.monotonic()
    yield
    say(f"{time.monotonic() - began:6.1f} s  {what}")
