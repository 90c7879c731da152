"""A container whose volumes are marked: its queue of events, and the agent's mounts of its volumes.

Everything is opened below the root of the container's own process, and a mount is only used if it
is the one of the table of mounts: what a container puts in the way of a path leads nowhere.
"""

import errno
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from clew.agents.node.containers.container_discovery import ContainerProcess, read_mounts
from clew.agents.node.containers.mount_table import MountEntry, find_mount
from clew.agents.node.containers.watch_plan import PlannedContainer, PlannedMount, PlannedPod
from clew.agents.node.kernel.fanotify import EventGroup
from clew.agents.node.kernel.mount_namespace import copy_mount
from clew.agents.node.kernel.processes import NO_SYMLINKS, open_in_root
from clew.agents.node.kernel.volume_mount import VolumeMount, mount_id
from clew.agents.node.layer.layer_mount import Layer
from clew.documents.ids import Locator, Uid
from clew.witness.volumes.volumes import Volume

_LOG = logging.getLogger("clew.agents")


@dataclass
class WatchedMount:
    planned: PlannedMount
    mount: VolumeMount
    entry: MountEntry
    layer: Layer | None = None
    """The layer over this mount; None: the mount is marked for fanotify."""

    @property
    def volume(self) -> Volume:
        """Only what runs on this node changes a local one: not if it is on a network file system,
        whatever the cluster calls it."""
        volume = self.planned.volume
        return msgspec.structs.replace(volume, local=False) if self.entry.network else volume


@dataclass
class WatchedContainer:
    uid: Uid
    pod: PlannedPod
    planned: PlannedContainer
    process: ContainerProcess
    watched_at: int
    group: EventGroup
    mounts: list[WatchedMount] = field(default_factory=list)
    late: bool = False
    """Its program ran before everything was marked."""
    failures: list[tuple[PlannedMount, str]] = field(default_factory=list)
    """Volumes of which something cannot be seen, and why."""
    incomplete: set[Locator] = field(default_factory=set)
    """The volumes (locators without a path) whose accesses are not all observed."""

    @property
    def complete(self) -> set[Locator]:
        """The volumes, as a whole, all accesses to which are seen."""
        if self.late:
            return set()
        hidden = {one.whole for one in self.planned.unseen}
        return {one.planned.volume.whole for one in self.mounts} - self.incomplete - hidden

    def fail(self, mount: PlannedMount, why: str) -> None:
        """Accesses to a volume cannot be seen."""
        self.failures.append((mount, why))
        self.incomplete.add(mount.volume.whole)

    def close(self) -> None:
        self.group.close()
        for one in self.mounts:
            one.mount.close()
            if one.layer is not None:
                one.layer.close()


def mark_container(
    uid: Uid,
    pod: PlannedPod,
    planned: PlannedContainer,
    process: ContainerProcess,
    chosen: Sequence[PlannedMount],
) -> WatchedContainer | None:
    """A container whose mounts are marked; None if some are not there yet."""
    mounts = _find_planned(process, chosen)
    if mounts is None:
        return None
    container = WatchedContainer(uid, pod, planned, process, 0, EventGroup())
    try:
        _mark_mounts(container, chosen, mounts)
    except FileNotFoundError:  # the runtime changes the root of the process just now
        container.close()
        return None
    return container


def _find_planned(
    process: ContainerProcess, planned: Sequence[PlannedMount]
) -> Mapping[bytes, MountEntry] | None:
    """The mount of each volume by its point; None if some are not mounted yet."""
    found: dict[bytes, MountEntry] = {}
    for mount in planned:
        entry = find_mount(process.mounts, mount.point)
        if entry is not None:
            found[mount.point] = entry
        elif not process.running:
            return None
    return found


def _mark_mounts(
    container: WatchedContainer,
    planned: Sequence[PlannedMount],
    found: Mapping[bytes, MountEntry],
) -> None:
    """Mark the mounts of a container; what fails is in `failures`. FileNotFoundError: a mount is
    not there yet, and the program of the container does not run."""
    for mount in planned:
        entry = found.get(mount.point)
        if entry is None:
            container.fail(mount, "it is not mounted in the container")
            continue
        try:
            container.mounts.append(_mark(container, mount, entry))
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not container.process.running:
                raise
            container.fail(mount, _explain(error))


def _explain(error: OSError) -> str:
    """Why a mount could not be marked."""
    if error.errno in (errno.ENODEV, errno.EOPNOTSUPP, errno.EXDEV):  # it has no ids of files
        return "fanotify does not support this file system"
    return f"fanotify: {error.strerror or error}"


def _mark(container: WatchedContainer, planned: PlannedMount, entry: MountEntry) -> WatchedMount:
    pid = container.process.pid
    descriptor = open_mount(pid, entry)
    try:
        copy = VolumeMount(copy_mount(pid, descriptor), prefix=planned.prefix)
        try:
            if planned.needs_layer(network=entry.network):
                try:
                    layer = Layer(pid, descriptor, copy.root, read_only=entry.read_only)
                    return WatchedMount(planned, copy, entry, layer)
                except OSError as error:
                    why = f"the layer could not be put there: {error.strerror or error}"
                    container.failures.append((planned, why))
            container.group.mark_mount(descriptor)
        except OSError:
            copy.close()
            raise
        return WatchedMount(planned, copy, entry)
    finally:
        os.close(descriptor)


def open_mount(pid: int, entry: MountEntry) -> int:
    """Open the root of a mount of a process, as a descriptor of a path. The path may have changed
    since the table was read, when the runtime made the container's root that of the process: then
    there is nothing at the old path, or the directory on which it was mounted. FileNotFoundError:
    the process cannot reach the mount. While its root changes, it can reach neither path."""
    failed: OSError
    try:
        opened = open_in_root(pid, entry.point, os.O_PATH, resolve=NO_SYMLINKS)
    except FileNotFoundError as error:
        failed = error
    else:
        if mount_id(opened) == entry.id:
            return opened
        os.close(opened)
        failed = OSError(f"another mount covers {os.fsdecode(entry.point)}")
    moved = next((one for one in read_mounts(pid) if one.id == entry.id), None)
    if moved is None:
        raise FileNotFoundError(errno.ENOENT, "it is not mounted in the container")
    if moved.point == entry.point:
        raise failed
    return open_mount(pid, moved)
