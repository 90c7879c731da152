"""Prepare the start of a process: its token, its port, its directories; and find out its port."""

import os
import re
import secrets
import shutil
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from clew.kube.objects import Object, dig, name_of, uid_of
from clew.kube.workload_tokens import token_digest
from clew.workloads.local.processes.child_process import ChildProcess
from clew.workloads.local.processes.launch_plan import LaunchPlan, child_environment
from clew.workloads.local.processes.orphans import VARIABLE

_ADDRESS = re.compile(rb'\{"address": "http://127\.0\.0\.1:(\d{1,5})/')
_LISTEN = "0A"
"""The state of a socket, as the kernel writes it."""
_ROOT_MODE = 0o500


class Start(NamedTuple):
    command: tuple[str, ...]
    environment: Mapping[str, str]
    token: str
    """New at each start: a program that takes the port of a process that has ended learns
    nothing."""
    runtime: Path
    """Its private directory."""
    port: int
    """The port that it was given, if it cannot choose one itself."""
    generation: int
    """The generation of the resource."""


def prepare_start(
    plan: LaunchPlan, resource: Object, *, roots: Path, runtime: Path, owner: str
) -> Start:
    shutil.rmtree(runtime, ignore_errors=True)
    runtime.mkdir(mode=0o700)
    ports = runtime / "port"
    token = secrets.token_hex(32)
    digest = token_digest(token)
    port = _free_port()
    given = {"{port}": str(port), "{ports}": str(ports), "{digest}": digest}
    environment = child_environment(plan, digest) | {VARIABLE: f"{owner}/{uid_of(resource)}"}
    if resource["kind"] == "Notebook":
        root = roots / name_of(resource)
        make_root(root, plan.links)
        environment |= {
            "JUPYTER_RUNTIME_DIR": str(runtime),
            "CLEW_NOTEBOOK_ROOT": str(root),
            "CLEW_NOTEBOOK_HOME": str(root / plan.home),
        }
    return Start(
        command=tuple(_fill(word, given) for word in plan.command),
        environment=environment,
        token=token,
        runtime=runtime,
        port=port,
        generation=int(dig(resource, "metadata", "generation") or 0),
    )


def _fill(word: str, given: Mapping[str, str]) -> str:
    if word in given:
        return given[word]
    option, _, value = word.partition("=")
    return f"{option}={given[value]}" if value in given else word


def find_port(kind: str, start: Start, process: ChildProcess) -> int | None:
    """The port that the process listens on; None: it does not yet. A process of another user that
    takes the port first is never mistaken for it."""
    with suppress(OSError, ValueError):
        if kind == "Notebook":
            return start.port if _listens(start.port) else None
        if kind == "Tensorboard":
            return int((start.runtime / "port").read_text())
        found = _ADDRESS.search(process.last_output)
        return int(found[1]) if found else None
    return None


def _listens(port: int) -> bool:
    """Whether a process of this user listens on a port of 127.0.0.1. Jupyter does not say when it
    does: it writes its file before."""
    wanted = f"0100007F:{port:04X}" if sys.byteorder == "little" else f"7F000001:{port:04X}"
    with open("/proc/net/tcp") as table:
        rows = (line.split() for line in table)
        return any(
            row[1] == wanted and row[3] == _LISTEN and row[7] == str(os.geteuid()) for row in rows
        )


def make_root(root: Path, links: Mapping[str, Path]) -> None:
    """The root directory of a notebook: a link for each volume, and nothing else."""
    remove_root(root)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    root.chmod(0o700)
    for name, place in links.items():
        (root / name).symlink_to(place)
    root.chmod(_ROOT_MODE)


def remove_root(root: Path) -> None:
    """Remove the links. Files that someone saved beside them are kept."""
    with suppress(FileNotFoundError):
        root.chmod(0o700)
        for entry in os.scandir(root):
            if entry.is_symlink():
                Path(entry.path).unlink()
        with suppress(OSError):
            root.rmdir()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
