"""Wait for a condition that must come true."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TIMEOUT = 180.0
"""Seconds; only a failing test waits that long, and a loaded machine may need much of it."""


def wait_until(what: str, condition: Callable[[], T]) -> T:
    """Wait until the condition is true; return its value.

    A condition that takes long to check is checked less often: what it waits for needs the
    processor, too.
    """
    end = time.monotonic() + TIMEOUT
    while True:
        began = time.monotonic()
        if value := condition():
            return value
        assert began < end, f"still waiting: {what}"
        time.sleep(max(0.005, 2 * (time.monotonic() - began)))
