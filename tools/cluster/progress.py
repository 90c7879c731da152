"""Report each step and how long it took: a start without output would look stuck."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class ClusterError(Exception):
    """An error that the user can act on; the message says what, and where to look."""


def report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """One line per step, written when it is done."""
    began = time.monotonic()
    yield
    report(f"{time.monotonic() - began:6.1f} s  {what}")
