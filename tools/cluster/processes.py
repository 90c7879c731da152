"""The programs of the cluster: started inside, each with a log and a record, ended by pid.

The pid is one of the cluster's PID namespace, and is signalled from within it: so a signal can only
reach a process of this cluster.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.cluster.binaries import search_path
from tools.cluster.commands import ClusterError
from tools.cluster.layout import Cluster
from tools.cluster.namespaces import run_inside

# The shell ends at once; its child becomes one of the namespace's first process.
START = 'log=$1; shift; setsid "$@" >>"$log" 2>&1 </dev/null & echo $!'

PATIENCE = 300.0  # seconds; a machine that is busy elsewhere is slow, not broken


def start(cluster: Cluster, name: str, *command: str, variables: Sequence[str] = ()) -> None:
    """Start a program, and record how, so that it can be started again after it was stopped.
    `variables`: more of its environment, as NAME=VALUE."""
    _record(cluster, name).parent.mkdir(exist_ok=True)
    log = cluster.logs / f"{name}.log"
    environment = ("env", "-i", f"PATH={search_path()}", "HOME=/root", *variables)
    pid = run_inside(cluster, *environment, "sh", "-c", START, "sh", str(log), *command)
    record = {"pid": int(pid), "command": command, "variables": list(variables)}
    _record(cluster, name).write_text(json.dumps(record, indent=1))


def restart(cluster: Cluster, name: str) -> None:
    if is_running(cluster, name):
        raise ClusterError(f"{name} runs already: python -m tools.cluster stop {name}")
    _, command, variables = _read(cluster, name)
    start(cluster, name, *command, variables=variables)


def stop(cluster: Cluster, name: str, *, how: str = "TERM") -> None:
    """Send a signal, and wait until the process is gone."""
    if is_running(cluster, name):
        run_inside(cluster, "kill", f"-{how}", _read(cluster, name)[0])
    wait_until(lambda: not is_running(cluster, name), f"{name} ends")


def is_running(cluster: Cluster, name: str) -> bool:
    # Another process may have the pid by now, so its arguments are compared. At first they are
    # those of the shell or setsid, which end with the same words; during an exec there are none. A
    # zombie has none either, so its state is checked before.
    pid, command, _ = _read(cluster, name)
    said = run_inside(
        cluster, "sh", "-c", f"cat /proc/{pid}/stat /proc/{pid}/cmdline 2>/dev/null || :"
    )
    status, _, words = said.partition("\n")
    if status.rpartition(")")[2].split()[:1] in ([], ["Z"], ["X"]):
        return False
    return not words or words.split("\0")[:-1][-len(command) :] == command


def program_names(cluster: Cluster) -> list[str]:
    return sorted(file.stem for file in _records(cluster).glob("*.json"))


def wait_for(cluster: Cluster, name: str, ready: Callable[[], bool]) -> None:
    """Wait until a program is ready; if it ends instead, fail with the end of its log."""

    def ready_or_ended() -> bool:
        if ready():
            return True
        if not is_running(cluster, name):
            log = cluster.logs / f"{name}.log"
            last = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise ClusterError(f"{name} ended; {log} has at its end:\n{last}")
        return False

    wait_until(ready_or_ended, f"{name} is ready ({cluster.logs / name}.log)")


def wait_until(true: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > until:
            raise ClusterError(f"waited {PATIENCE:.0f} seconds until {what}")
        time.sleep(0.1)


def _records(cluster: Cluster) -> Path:
    return cluster.folder / "processes"


def _record(cluster: Cluster, name: str) -> Path:
    return _records(cluster) / f"{name}.json"


def _read(cluster: Cluster, name: str) -> tuple[str, list[str], list[str]]:
    """The pid, command and variables of a program."""
    try:
        record = json.loads(_record(cluster, name).read_text())
        return str(record["pid"]), list(record["command"]), list(record["variables"])
    except FileNotFoundError:
        raise ClusterError(
            f"no such program: {name}; there are: {', '.join(program_names(cluster))}"
        ) from None
