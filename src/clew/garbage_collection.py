"""Look for reference cycles less often while many values are made that are in none.

With Python's own threshold of 700 new objects, it looks through them again and again while the
rows of a large answer, or the events of tasks, become values: that takes a fifth of the time.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 20_000
"""New objects between two searches."""
_lock = threading.Lock()
_users = 0
_before = gc.get_threshold()


@contextmanager
def collect_seldom() -> Iterator[None]:
    """For a block or a function, in any thread."""
    global _users, _before  # noqa: PLW0603  (the threshold is the interpreter's)
    with _lock:
        if _users == 0:
            _before = gc.get_threshold()
            gc.set_threshold(_OBJECTS, *_before[1:])
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                gc.set_threshold(*_before)
