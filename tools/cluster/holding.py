"""The namespaces a cluster lives in, and the one process that holds them.

It is the first process of its process namespace: when it ends, the kernel ends every other one,
and with the last of them go the mounts and the network. It does nothing until its number is
written down, and ends when nobody tells it to go on, so none is ever left that nobody knows.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from tools.cluster.machine import forget, note, noted
from tools.cluster.places import RUN, Cluster
from tools.cluster.running import run
from tools.cluster.saying import Failed

# Ignoring SIGCHLD survives exec: the kernel then buries the orphans of the whole namespace. Some
# shells do not ignore it though told to, so `env` does.
HOLD = "read go || exit 1; exec env --ignore-signal=CHLD sleep infinity"

# Folders that the cluster's programs write to, wherever they were told to write, are covered by
# empty ones. The arguments are the folders that must be seen nevertheless, wherever they are: they
# are opened before, and what is open can be mounted by the number it is open as.
COVER = """
set -e
n=2
for kept; do n=$((n + 1)); eval "exec $n<\\"\\$kept\\""; done
for covered in /run /var/lib /var/log; do mount -t tmpfs tmpfs $covered; done
n=2
for kept; do
    n=$((n + 1)); mkdir -p "$kept"; mount --no-canonicalize --rbind /proc/self/fd/$n "$kept"
done
mount --make-rshared /
"""

# What a kubelet sets for the whole machine. It gets files to write to in their place.
TUNABLES = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def hold(cluster: Cluster, *, seen: tuple[Path, ...]) -> None:
    """Make the namespaces, with `seen` visible in them."""
    log = cluster.logs / "namespaces.log"
    with log.open("w") as said:
        process = subprocess.Popen(
            (
                *("unshare", "--pid", "--fork", "--mount-proc", "--net"),
                *("--mount", "--propagation", "private", "sh", "-c", HOLD),
            ),
            stdin=subprocess.PIPE,
            stdout=said,  # or whoever reads ours waits for its end
            stderr=said,
            start_new_session=True,  # a ^C is not meant for it
            cwd="/",
        )
    assert process.stdin is not None
    pid = _child(process)
    if pid is None:
        raise Failed(f"no namespaces can be made here: {log.read_text()}")
    note(cluster.mark, json.dumps({"pid": pid, "started": _started(pid)}))
    process.stdin.write(b"go\n")
    process.stdin.close()
    inside(cluster, "sh", "-c", COVER, "sh", *map(str, seen))
    inside(cluster, "mkdir", "-p", *(f"{RUN}/{node.name}" for node in cluster.nodes))
    for name, value in TUNABLES.items():
        file = cluster.folder / "tunables" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        inside(cluster, "mount", "--bind", str(file), f"/proc/sys/{name}")


def holder(cluster: Cluster) -> int | None:
    """The process that holds the namespaces, if it lives."""
    found = noted(cluster.mark)
    if found is None:
        return None
    record = json.loads(found)
    pid = int(record["pid"])
    return pid if _started(pid) == record["started"] else None


def let_go(cluster: Cluster) -> None:
    """End everything inside; it is gone when this returns."""
    if pid := holder(cluster):
        os.kill(pid, signal.SIGKILL)
    while holder(cluster) is not None:
        time.sleep(0.02)
    forget(cluster.mark)


def entering(cluster: Cluster) -> tuple[str, ...]:
    """The words before a command that make it run inside."""
    pid = holder(cluster)
    if pid is None:
        raise Failed(f"there is no cluster at {cluster.folder}: make cluster")
    return ("nsenter", "--target", str(pid), "--pid", "--mount", "--net", "--wd=/", "--")


def inside(cluster: Cluster, *words: str, given: str = "") -> str:
    """Run a command inside to its end, and return what it says."""
    return run(*entering(cluster), *words, given=given)


def _child(process: subprocess.Popen[bytes]) -> int | None:
    """`unshare` stays behind as the parent; the first process of the namespace is its child."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        found = children.read_text().split()
        if found:
            return int(found[0])
        time.sleep(0.005)
    return None


def _started(pid: int) -> str | None:
    """When a process began, this boot: with it a number is never mistaken for a later process's."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *rest = stat.rpartition(")")[2].split()
    if state in "ZX":
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{rest[18]}"
