"""Containers that start and end on this node, seen by their cgroups.

The runtime makes the cgroup, then the mounts, and only then runs the container's program. In
between, the mounts can be marked: so the agent sees even the first access of a container that ends
at once. Asking the API server would be seconds too late.
"""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from clew.agents.node.containers.cgroups import (
    container_of_directory,
    container_of_process,
    pod_of_directory,
)
from clew.agents.node.containers.mount_table import MountEntry, parse_mounts
from clew.agents.node.kernel.inotify import DirectoryWatch
from clew.agents.node.kernel.processes import is_ending, parent_of, process_status
from clew.documents.ids import Uid
from clew.prov.cluster.activity_uids import container_uid

_RUNTIME = re.compile(rb"(runc|crun|youki)(:\[.*)?")
"""The name of a process that does not run the container's program yet."""
_MAX_TABLE = 16 << 20


class ContainerFound(NamedTuple):
    uid: Uid
    cgroup: bytes


class ContainerGone(NamedTuple):
    uid: Uid


class ContainersLost(NamedTuple):
    """The kernel dropped changes: a short container may have been among them."""


ContainerChange = ContainerFound | ContainerGone | ContainersLost


class ContainerWatch:
    """Not safe to use from several threads."""

    def __init__(self, pods: Path) -> None:
        """`pods`: the directory with the cgroups of all Pods of this node."""
        self._pods = os.fsencode(pods)
        self._watch = DirectoryWatch()
        self._known: dict[bytes, Uid] = {}

    @property
    def descriptor(self) -> int:
        """Readable when something changed."""
        return self._watch.descriptor

    def scan(self) -> Iterator[ContainerFound | ContainerGone]:
        """All containers that are not known yet, and those that are gone."""
        yield from self._enter(self._pods, b"")
        for cgroup in [path for path in self._known if not os.path.isdir(path)]:
            yield ContainerGone(self._known.pop(cgroup))

    def changes(self) -> Iterator[ContainerChange]:
        for change in self._watch.read():
            if not change.directory:
                yield ContainersLost()
                yield from self.scan()
            elif change.created:
                parent = os.path.basename(change.directory)
                yield from self._enter(os.path.join(change.directory, change.created), parent)
            elif change.removed:
                removed = os.path.join(change.directory, change.removed)
                if removed in self._known:
                    yield ContainerGone(self._known.pop(removed))

    def close(self) -> None:
        self._watch.close()

    def _enter(self, directory: bytes, parent: bytes) -> Iterator[ContainerFound | ContainerGone]:
        """Watch a directory and what is in it already, down to the containers."""
        pod = pod_of_directory(parent.decode(errors="replace"))
        name = container_of_directory(os.path.basename(directory).decode(errors="replace"))
        if pod is not None and name is None:
            return
        uid = container_uid(pod, name) if pod is not None and name is not None else None
        try:
            self._watch.add(directory)
        except OSError:  # it is gone already
            if uid is not None and directory not in self._known:
                yield ContainerFound(uid, directory)
                yield ContainerGone(uid)
            return
        if uid is not None:
            if directory not in self._known:
                self._known[directory] = uid
                yield ContainerFound(uid, directory)
            return
        try:
            names = [entry.name for entry in os.scandir(directory) if entry.is_dir()]
        except OSError:
            return
        for one in names:
            yield from self._enter(os.path.join(directory, one), os.path.basename(directory))


class ContainerProcess(NamedTuple):
    """The first process of a container."""

    pid: int
    mounts: list[MountEntry]
    running: bool
    """It runs the container's program; before that, it is the runtime's."""
    started: int
    cgroup: bytes
    namespace: int
    """The number of its mount namespace."""

    @property
    def prepared(self) -> bool:
        """Whether it has mounts of its own; before that, it has those of the runtime."""
        try:
            return self.namespace != mount_namespace(parent_of(self.pid))
        except OSError:
            return False


def read_process(cgroup: bytes) -> ContainerProcess | None:
    """The first process in a cgroup; None if there is none, or it ended meanwhile.

    Whether it runs the program is read first: if it does, nothing is mounted any more, so the
    mounts that are read then are all. The other way round, a container whose program starts between
    the two steps looks like one without volumes."""
    try:
        with open(os.path.join(cgroup, b"cgroup.procs"), "rb") as file:
            pids = file.read(1 << 16).split()
        if not pids:
            return None
        pid = int(pids[0])
        running = is_running(pid)
        mounts = read_mounts(pid)
        return ContainerProcess(pid, mounts, running, start_time(pid), cgroup, mount_namespace(pid))
    except (OSError, ValueError):
        return None


def leaves_mounts(container: ContainerProcess) -> bool:
    """Whether a program in a container has a mount namespace of its own: copies of mounts are not
    marked. A program that the runtime adds has the node's, until it joins the container."""
    try:
        with open(os.path.join(container.cgroup, b"cgroup.procs"), "rb") as file:
            pids = [int(pid) for pid in file.read(1 << 16).split()]
    except OSError:  # it has ended
        return False
    return any(_has_left(pid, container.namespace) for pid in pids)


def _has_left(pid: int, namespace: int) -> bool:
    try:
        return mount_namespace(pid) not in (namespace, mount_namespace(parent_of(pid)))
    except OSError:
        return False


def mount_namespace(pid: int) -> int:
    return os.stat(f"/proc/{pid}/ns/mnt").st_ino


def read_mounts(pid: int) -> list[MountEntry]:
    with open(f"/proc/{pid}/mountinfo", "rb") as file:
        return parse_mounts(file.read(_MAX_TABLE))


def is_running(pid: int) -> bool:
    """Whether a process runs the program of its container, and no longer the runtime's."""
    with open(f"/proc/{pid}/comm", "rb") as file:
        return not is_runtime(file.read(64).rstrip(b"\n"))


def has_run(pid: int) -> bool:
    """Whether it may have run the program: it does, or it has ended."""
    try:
        return is_running(pid)
    except OSError:
        return True


def is_runtime(name: bytes) -> bool:
    """Whether a process with this name prepares a container."""
    return _RUNTIME.fullmatch(name) is not None


def container_of_event(pid: int, process: int) -> tuple[Uid | None, bool]:
    """The container of a process, and whether that is known: the process may have ended. As long
    as the descriptor can be signalled, no other process has its pid; but while it ends, the kernel
    shows it outside of its cgroup."""
    try:
        with open(f"/proc/{pid}/cgroup") as file:
            found = container_of_process(file.read(1 << 16))
        ends = found is None and is_ending(pid)
        signal.pidfd_send_signal(process, 0)
    except OSError:
        return None, False
    return found, not ends


def start_time(pid: int) -> int:
    """When a process began, in nanoseconds since 1970."""
    ticks = int(process_status(pid)[19])
    with open("/proc/stat", "rb") as file:
        boot = next(int(line.split()[1]) for line in file if line.startswith(b"btime "))
    return boot * 10**9 + ticks * (10**9 // os.sysconf("SC_CLK_TCK"))
