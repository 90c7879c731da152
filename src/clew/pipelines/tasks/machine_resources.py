"""How much room this machine has for tasks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from clew.pipelines.engine.resources import Capacity
from clew.witness.accelerators import accelerators

_UNLIMITED = 2**60
"""What a control group without a limit says is more than this."""


def measure_capacity(jobs: int | None, root: Path = Path("/"), *, gpus: bool = True) -> Capacity:
    """`jobs`: so many tasks at once, though there be fewer cores; `gpus`: they are asked for."""
    cores = len(os.sched_getaffinity(0))
    return Capacity(
        cores=max(cores, jobs or 0),
        memory=min([_total_memory(root), *_cgroup_limits(root)]),
        gpus=len(accelerators(root, {}).get("gpu", ())) if gpus else 0,
        tasks=jobs,
    )


def _total_memory(root: Path) -> float:
    found = re.search(r"^MemTotal:\s+(\d+) kB", (root / "proc/meminfo").read_text(), re.M)
    return float(found[1]) * 1024 if found else float(_UNLIMITED)


def _cgroup_limits(root: Path) -> Iterator[float]:
    """What the control groups that this process is in let it have."""
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
        own = PurePosixPath(path.lstrip("/"))
        for group in (own, *own.parents):
            try:
                said = (top / group / name).read_text().strip()
            except OSError:
                continue
            if said.isdigit() and int(said) < _UNLIMITED:
                yield float(said)
