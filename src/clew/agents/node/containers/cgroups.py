"""Cgroups: which container a process belongs to, and where the containers of a node are.

Container runtimes name the cgroup of a container after its id and the one above after the Pod, in
version 1 and 2 of cgroups, managed by systemd (`kubepods-podUID.slice/cri-containerd-ID.scope`) or
not (`kubepods/podUID/ID`).
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from clew.documents.ids import Uid
from clew.prov.cluster.activity_uids import container_uid, object_uid

_POD = re.compile(r"(?:.*-)?pod([0-9a-fA-F_-]{32,36})(?:\.slice)?")
_CONTAINER = re.compile(r"(?:[a-z0-9-]+-)?([0-9a-f]{64})(?:\.scope)?")
_PODS = re.compile(r"kubepods(\.slice)?")
_HIERARCHIES = ("pids", "memory", "cpu,cpuacct", "cpu", "systemd")
_MAX_DEPTH = 3
"""How far below the top the directory of all Pods is looked for: nodes of tests share a machine."""


def pod_of_directory(name: str) -> Uid | None:
    """The Pod whose cgroup has this name."""
    match = _POD.fullmatch(name)
    return object_uid(match[1].replace("_", "-")) if match else None


def container_of_directory(name: str) -> str | None:
    """The id of the container whose cgroup has this name."""
    match = _CONTAINER.fullmatch(name)
    return match[1] if match else None


def container_of_path(path: str) -> Uid | None:
    """The container whose cgroup is this one, or contains it."""
    pod: Uid | None = None
    for part in path.split("/"):
        if pod is None:
            pod = pod_of_directory(part)
        elif container := container_of_directory(part):
            return container_uid(pod, container)
    return None


def container_of_process(table: str) -> Uid | None:
    """The container of a process, from its `/proc/PID/cgroup`."""
    for line in table.splitlines():
        found = container_of_path(line.split(":", 2)[-1])
        if found is not None:
            return found
    return None


def find_pods_directory(own: str, *, root: Path = Path("/sys/fs/cgroup")) -> Path | None:
    """The directory with the cgroups of this node's Pods. `own` is the agent's `/proc/self/cgroup`:
    it runs in one of them. Outside of a Pod, the first one that is found."""
    for line in own.splitlines():
        parts = line.split(":", 2)[-1].strip("/").split("/")
        above = next((i for i, part in enumerate(parts) if _PODS.fullmatch(part)), None)
        if above is None:
            continue
        for hierarchy in _hierarchies(root):
            if (found := hierarchy.joinpath(*parts[: above + 1])).is_dir():
                return found
    return next((found for one in _hierarchies(root) for found in _search(one, _MAX_DEPTH)), None)


def _hierarchies(root: Path) -> Iterator[Path]:
    if (root / "cgroup.controllers").exists():
        yield root
    for name in _HIERARCHIES:
        if (root / name).is_dir():
            yield root / name


def _search(directory: Path, depth: int) -> Iterator[Path]:
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        if _PODS.fullmatch(name):
            yield directory / name
    if depth > 1:
        for name in names:
            yield from _search(directory / name, depth - 1)
