"""Measure the capacity of this machine: cores, memory within cgroup limits, GPUs."""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from clew.pipelines.engine.resources import Capacity
from clew.witness.accelerators import find_accelerators

_UNLIMITED = 2**60
"""A cgroup v1 without a limit reports more than this."""


def measure_capacity(jobs: int | None, root: Path = Path("/"), *, gpus: bool = True) -> Capacity:
    """`jobs`: the user's limit, which may exceed the number of cores; `gpus`: look for GPUs."""
    cores = len(os.sched_getaffinity(0))
    return Capacity(
        cores=max(cores, jobs or 0),
        memory=min([_total_memory(root), *_cgroup_limits(root)]),
        gpus=len(find_accelerators(root, {}).get("gpu", ())) if gpus else 0,
        max_tasks=jobs,
    )


def _total_memory(root: Path) -> float:
    match = re.search(r"^MemTotal:\s+(\d+) kB", (root / "proc/meminfo").read_text(), re.M)
    return float(match[1]) * 1024 if match else float(_UNLIMITED)


def _cgroup_limits(root: Path) -> Iterator[float]:
    """The memory limits of the cgroups that this process is in."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        top = root / "sys/fs/cgroup" / controllers
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        cgroup = PurePosixPath(path.lstrip("/"))
        for group in (cgroup, *cgroup.parents):
            try:
                limit = (top / group / name).read_text().strip()
            except OSError:
                continue
            if limit.isdigit() and int(limit) < _UNLIMITED:
                yield float(limit)
