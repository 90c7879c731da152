"""Who may use the cluster at the same time, when tests run on several workers.

Most tests stay in namespaces of their own, with an operator for these alone, and go side by side.
Those that act in every namespace have the cluster for themselves; meanwhile, those that bring up
another to break it may run. Each of these two kinds is one group, of many tests: pytest-xdist
begins with the largest groups, so they run beside each other, and nobody waits for long.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

EVERYWHERE = pytest.mark.xdist_group("everywhere")
OWN_CLUSTER = pytest.mark.xdist_group("own cluster")


@contextmanager
def shared(test: pytest.Item, lock: Path) -> Iterator[None]:
    """The cluster as the test needs it."""
    group = test.get_closest_marker("xdist_group")
    if group == OWN_CLUSTER.mark:
        yield
        return
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX if group == EVERYWHERE.mark else fcntl.LOCK_SH)
        yield
