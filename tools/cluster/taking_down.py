"""Down: nothing is left, whatever state the cluster is in.

Everything inside the namespaces goes with the process that holds them. The rest has names that
follow from the folder, and is taken away one by one; the folder comes last, so that a `down` which
is itself interrupted can be done again.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from tools.cluster import binaries
from tools.cluster.holding import let_go
from tools.cluster.network import unplug
from tools.cluster.nodes import cgroups
from tools.cluster.places import Cluster
from tools.cluster.saying import Failed, step


def down(folder: Path) -> None:
    binaries.cache().mkdir(parents=True, exist_ok=True)
    with binaries.locked(binaries.cache() / "clusters.lock"), step("the cluster is down"):
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
    if not group.exists():
        return
    for path, _, _ in os.walk(group, topdown=False):
        for _ in range(100):
            try:
                Path(path).rmdir()
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.05)
            else:
                break


def _remove_folder(folder: Path) -> None:
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    within = [place for place in mounted if place.startswith(f"{folder}/")]
    if within:
        raise Failed(f"something is mounted in {folder}, so it stays: {', '.join(within)}")
    if folder.exists():
        shutil.rmtree(folder)
