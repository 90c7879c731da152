"""Down: nothing is left, whatever state the cluster is in.

Everything inside the namespaces goes with the process that holds them. The rest has names that
follow from the folder's path, and is taken away one by one, whether the folder is still there or
not; it comes last, so that a `down` which is itself interrupted can be done again.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from tools.cluster.holding import let_go
from tools.cluster.machine import turn
from tools.cluster.network import unplug
from tools.cluster.nodes import cgroups
from tools.cluster.places import Cluster
from tools.cluster.saying import Failed, step

PATIENCE = 10.0  # seconds


def down(folder: Path) -> None:
    with turn(), step("the cluster is down"):
        clear_away(folder)


def clear_away(folder: Path) -> None:
    cluster = Cluster(folder)
    let_go(cluster)
    unplug(cluster)
    for group in cgroups(cluster):
        _remove_cgroup(group)
    _remove_folder(folder)


def _remove_cgroup(group: Path) -> None:
    """Children first. The kernel may take a moment to let go of the last process."""
    until = time.monotonic() + PATIENCE
    for path, _, _ in os.walk(group, topdown=False):
        while Path(path).exists():
            try:
                Path(path).rmdir()
            except OSError as error:
                if time.monotonic() > until:
                    within = " ".join(Path(path, "cgroup.procs").read_text().split())
                    raise Failed(f"{path} stays, with the processes {within or error}") from None
                time.sleep(0.05)


def _remove_folder(folder: Path) -> None:
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    within = [place for place in mounted if place.startswith(f"{folder}/")]
    if within:
        raise Failed(f"something is mounted in {folder}, so it stays: {', '.join(within)}")
    if folder.exists():
        shutil.rmtree(folder)
