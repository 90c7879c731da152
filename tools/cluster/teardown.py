"""Take a cluster down, whatever its state; nothing is left.

Everything inside the namespaces ends with the process that holds them. The rest has names that
follow from the path of the folder, and is removed one by one, whether the folder exists or not. The
folder comes last, so an interrupted `down` can be repeated.
"""

import os
import shutil
import time
from pathlib import Path

from tools.cluster.layout import Cluster
from tools.cluster.namespaces import destroy_namespaces
from tools.cluster.network import disconnect_network
from tools.cluster.nodes import cgroups
from tools.cluster.progress import ClusterError, step
from tools.cluster.shared_state import lock_machine

PATIENCE = 10.0  # seconds


def take_down(folder: Path) -> None:
    with lock_machine(), step("the cluster is down"):
        remove_cluster(folder)


def remove_cluster(folder: Path) -> None:
    cluster = Cluster(folder)
    destroy_namespaces(cluster)
    disconnect_network(cluster)
    for group in cgroups(cluster):
        _remove_cgroup(group)
    _remove_folder(folder)


def _remove_cgroup(group: Path) -> None:
    """Children first. The kernel may need a moment to release the last process."""
    until = time.monotonic() + PATIENCE
    for path, _, _ in os.walk(group, topdown=False):
        while Path(path).exists():
            try:
                Path(path).rmdir()
            except OSError as error:
                if time.monotonic() > until:
                    within = " ".join(Path(path, "cgroup.procs").read_text().split())
                    raise ClusterError(
                        f"{path} stays, with the processes {within or error}"
                    ) from None
                time.sleep(0.05)


def _remove_folder(folder: Path) -> None:
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    within = [mount for mount in mounted if mount.startswith(f"{folder}/")]
    if within:
        raise ClusterError(f"something is mounted in {folder}, so it stays: {', '.join(within)}")
    if folder.exists():
        shutil.rmtree(folder)
