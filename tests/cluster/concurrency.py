"""A lock on the cluster for tests on several workers.

Most tests use their own namespace and operator, and run at the same time. Tests that act in all
namespaces lock the cluster. Tests that start a cluster of their own run beside these. Each of these
two kinds is one xdist group: pytest-xdist starts with the largest groups, so they run in parallel.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ALL_NAMESPACES = pytest.mark.xdist_group("everywhere")
ALONE = pytest.mark.cluster(alone=True)
"""Locks the cluster, too, in another group."""
OWN_CLUSTER = pytest.mark.xdist_group("own cluster")


@contextmanager
def lock_cluster(test: pytest.Item, lock: Path) -> Iterator[None]:
    """Hold the cluster, shared or exclusively, as the test needs it.

    Tests queue at a turnstile: while one waits to be alone there, no other begins."""
    group = test.get_closest_marker("xdist_group")
    if group == OWN_CLUSTER.mark:
        yield
        return
    with lock.open("w") as held, lock.with_suffix(".turnstile").open("w") as turnstile:
        marks = list(test.iter_markers("cluster"))
        alone = group == ALL_NAMESPACES.mark or any(mark.kwargs.get("alone") for mark in marks)
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(held, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield
