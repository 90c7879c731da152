"""The namespaces of a cluster, and the one process that holds them.

That process is the init of its PID namespace: when it ends, the kernel ends all others, and then
removes the mounts and the network. It waits until its pid is noted, and ends if its creator dies
before that, so no unknown one is ever left.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from tools.cluster.commands import ClusterError, run
from tools.cluster.layout import RUN, Cluster
from tools.cluster.shared_state import delete_note, read_note, write_note

# Ignoring SIGCHLD survives exec: the kernel then reaps the orphans of the whole namespace. Some
# shells do not ignore it though told to, so `env` does.
HOLD_SCRIPT = "read go || exit 1; exec env --ignore-signal=CHLD sleep infinity"

# Folders that the cluster's programs write to, wherever they were told to write, are covered by
# empty ones. The arguments are the folders that must be seen nevertheless, wherever they are: they
# are opened before, and what is open can be mounted by the number it is open as.
MOUNT_SCRIPT = """
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


def create_namespaces(cluster: Cluster, *, seen: tuple[Path, ...]) -> None:
    """Create the namespaces, with the folders `seen` visible in them."""
    log = cluster.logs / "namespaces.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            (
                *("unshare", "--pid", "--fork", "--mount-proc", "--net"),
                *("--mount", "--propagation", "private", "sh", "-c", HOLD_SCRIPT),
            ),
            stdin=subprocess.PIPE,
            stdout=output,  # not ours: a reader of our output would wait for its end
            stderr=output,
            start_new_session=True,  # a ^C is not meant for it
            cwd="/",
        )
    assert process.stdin is not None
    pid = _first_child(process)
    if pid is None:
        raise ClusterError(f"cannot create namespaces: {log.read_text()}")
    write_note(cluster.mark, json.dumps({"pid": pid, "started": _start_time(pid)}))
    process.stdin.write(b"go\n")
    process.stdin.close()
    run_inside(cluster, "sh", "-c", MOUNT_SCRIPT, "sh", *map(str, seen))
    run_inside(cluster, "mkdir", "-p", *(f"{RUN}/{node.name}" for node in cluster.nodes))
    for name, value in TUNABLES.items():
        file = cluster.folder / "tunables" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        run_inside(cluster, "mount", "--bind", str(file), f"/proc/sys/{name}")


def holder_pid(cluster: Cluster) -> int | None:
    """The pid of the process that holds the namespaces; None if it does not run."""
    found = read_note(cluster.mark)
    if found is None:
        return None
    record = json.loads(found)
    pid = int(record["pid"])
    return pid if _start_time(pid) == record["started"] else None


def destroy_namespaces(cluster: Cluster) -> None:
    """End everything inside, and wait until it has ended."""
    if pid := holder_pid(cluster):
        os.kill(pid, signal.SIGKILL)
    while holder_pid(cluster) is not None:
        time.sleep(0.02)
    delete_note(cluster.mark)


def nsenter_command(cluster: Cluster) -> tuple[str, ...]:
    """The prefix of a command that makes it run inside."""
    pid = holder_pid(cluster)
    if pid is None:
        raise ClusterError(f"there is no cluster at {cluster.folder}: make cluster")
    return ("nsenter", "--target", str(pid), "--pid", "--mount", "--net", "--wd=/", "--")


def run_inside(cluster: Cluster, *words: str, given: str = "") -> str:
    """Run a command inside to its end, and return its output."""
    return run(*nsenter_command(cluster), *words, given=given)


def _first_child(process: subprocess.Popen[bytes]) -> int | None:
    """`unshare` stays behind as the parent; the first process of the namespace is its child."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        found = children.read_text().split()
        if found:
            return int(found[0])
        time.sleep(0.005)
    return None


def _start_time(pid: int) -> str | None:
    """When a process started, with the boot id: so a reused pid is not mistaken for it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *rest = stat.rpartition(")")[2].split()
    if state in "ZX":
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{rest[18]}"
