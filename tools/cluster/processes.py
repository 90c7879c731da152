"""The cluster's own programs: started inside, each with a log and a record, ended by number.

The number is one of the cluster's process namespace, and is signalled from within it: whatever it
names, it is a process of this cluster.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.cluster.binaries import search_path
from tools.cluster.holding import inside
from tools.cluster.places import Cluster
from tools.cluster.saying import Failed

# The shell ends at once; its child becomes one of the namespace's first process.
START = 'log=$1; shift; setsid "$@" >>"$log" 2>&1 </dev/null & echo $!'

PATIENCE = 300.0  # seconds; a machine that is busy elsewhere is slow, not broken


def start(cluster: Cluster, name: str, *command: str, variables: Sequence[str] = ()) -> None:
    """Start a program, and keep how, so that it can be started again after it was stopped.
    `variables`: more of its environment, as NAME=VALUE."""
    _record(cluster, name).parent.mkdir(exist_ok=True)
    log = cluster.logs / f"{name}.log"
    environment = ("env", "-i", f"PATH={search_path()}", "HOME=/root", *variables)
    pid = inside(cluster, *environment, "sh", "-c", START, "sh", str(log), *command)
    record = {"pid": int(pid), "command": command, "variables": list(variables)}
    _record(cluster, name).write_text(json.dumps(record, indent=1))


def restart(cluster: Cluster, name: str) -> None:
    if lives(cluster, name):
        raise Failed(f"{name} runs already: python -m tools.cluster stop {name}")
    _, command, variables = _read(cluster, name)
    start(cluster, name, *command, variables=variables)


def stop(cluster: Cluster, name: str, *, how: str = "TERM") -> None:
    """Send a signal, and wait until the process is gone."""
    if lives(cluster, name):
        inside(cluster, "kill", f"-{how}", _read(cluster, name)[0])
    wait_until(lambda: not lives(cluster, name), f"{name} ends")


def lives(cluster: Cluster, name: str) -> bool:
    # The record may be of a process whose number another one has by now; and at first it is the
    # shell, or setsid, that is about to become the program, with the same words at its end, or
    # none while it does so. Neither has one that has ended and is still there.
    pid, command, _ = _read(cluster, name)
    said = inside(cluster, "sh", "-c", f"cat /proc/{pid}/stat /proc/{pid}/cmdline 2>/dev/null || :")
    status, _, words = said.partition("\n")
    if status.rpartition(")")[2].split()[:1] in ([], ["Z"], ["X"]):
        return False
    return not words or words.split("\0")[:-1][-len(command) :] == command


def names(cluster: Cluster) -> list[str]:
    return sorted(file.stem for file in _records(cluster).glob("*.json"))


def wait_for(cluster: Cluster, name: str, ready: Callable[[], bool]) -> None:
    """Wait until a program is ready; if it ends instead, say what its log says."""

    def ready_or_ended() -> bool:
        if ready():
            return True
        if not lives(cluster, name):
            log = cluster.logs / f"{name}.log"
            last = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise Failed(f"{name} ended; {log} has at its end:\n{last}")
        return False

    wait_until(ready_or_ended, f"{name} is ready ({cluster.logs / name}.log)")


def wait_until(true: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > until:
            raise Failed(f"waited {PATIENCE:.0f} seconds until {what}")
        time.sleep(0.1)


def _records(cluster: Cluster) -> Path:
    return cluster.folder / "processes"


def _record(cluster: Cluster, name: str) -> Path:
    return _records(cluster) / f"{name}.json"


def _read(cluster: Cluster, name: str) -> tuple[str, list[str], list[str]]:
    """A program's number, command and variables."""
    try:
        record = json.loads(_record(cluster, name).read_text())
        return str(record["pid"]), list(record["command"]), list(record["variables"])
    except FileNotFoundError:
        raise Failed(f"{name} is none of: {', '.join(names(cluster))}") from None
