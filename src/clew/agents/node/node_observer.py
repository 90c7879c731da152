"""Watch the containers of a node, and collect what the kernel reports about their volumes.

One thread does what cannot wait: it marks the mounts of a container before its program runs, reads
the queues before they overflow, and reads the cgroup of a process that changed a name before it
ends. It hands everything on in batches; another thread does the rest.
"""

import logging
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Collection
from contextlib import suppress

from clew.agents.node.container_starts import (
    Choose,
    ContainerStarts,
    FindPod,
    KnownContainer,
)
from clew.agents.node.containers.container_discovery import (
    ContainerChange,
    ContainerFound,
    ContainersLost,
    ContainerWatch,
    container_of_event,
    has_run,
)
from clew.agents.node.containers.watch_plan import writable_unseen
from clew.agents.node.containers.watched_container import (
    WatchedContainer,
    WatchedMount,
    mark_container,
)
from clew.agents.node.kernel.fanotify import ON_DIRECTORY, EventGroup, FileEvent, parse_events
from clew.agents.node.kernel.volume_mount import VolumeMount
from clew.agents.node.layer.layer_mount import Layer
from clew.agents.node.observation_batch import MissedContainer, ObservationBatch
from clew.documents.ids import Uid

_LOG = logging.getLogger("clew.agents")
_STARTING_SECONDS = 0.002
"""How often a container that starts is looked at."""
_IDLE_SECONDS = 1.0
_SWITCH_SECONDS = 0.0005
"""The switch interval of the interpreter (default: ten times as long), so this thread runs soon."""
_PRIORITY = -20
_GATHER_SECONDS = 0.002
_MAX_READS = 16
"""Read of one queue for a batch: a fast writer must not keep the thread there."""
_MAX_DIRECTORIES = 100_000
_LAST_READS = 4096
_LAYER_SECONDS = 5.0
"""How long a layer may take to end after its container."""
MAX_WAITING_BYTES = 512 << 20
"""Limit of batches that wait for the other thread. Beyond it, the kernel's queues overflow, which
they report."""


class NodeObserver:
    def __init__(self, watch: ContainerWatch, find_pod: FindPod, choose: Choose) -> None:
        self._watch = watch
        self._starts = ContainerStarts(find_pod, choose)
        self._containers: dict[Uid, WatchedContainer] = {}
        self._unwatched: dict[Uid, Collection[str] | None] = {}
        """Containers that are there, and the volumes that they can write unseen; None: any."""
        self._names: dict[int, EventGroup] = {}
        self._layers: set[int] = set()
        """Descriptors of layers that have not ended."""
        self._layer_processes: set[int] = set()
        self._poll = select.epoll()
        self._poll.register(watch.descriptor, select.EPOLLIN)
        self._batches: deque[ObservationBatch] = deque()
        self._waiting = 0
        self._ready = threading.Condition()
        self._inside: dict[bytes, bool] = {}
        """Directories, by their handles: whether they are on a watched volume."""
        self._stopping = False
        self._failure: BaseException | None = None

    # -- the other thread

    def next_batch(self, seconds: float) -> ObservationBatch | None:
        """The next batch, or None after these seconds. Raises what ended the other thread."""
        with self._ready:
            self._ready.wait_for(lambda: bool(self._batches) or self._stopping, seconds)
            if not self._batches:
                if self._failure is not None:
                    raise self._failure
                return None
            taken = self._batches.popleft()
            self._waiting -= taken.size
            self._ready.notify_all()
            return taken

    def stop(self) -> None:
        with self._ready:
            self._stopping = True
            self._ready.notify_all()

    # -- the thread that observes

    def run(self) -> None:
        """Observe until `stop`, and read what is in the queues once more."""
        try:
            self._observe()
        except BaseException as error:
            self._failure = error
            self.stop()

    def _observe(self) -> None:
        _raise_priority()
        for change in self._watch.scan():
            self._note(change, ObservationBatch(0))
        seen = ObservationBatch(0)
        while not self._stopping:
            if not seen.names:
                self._wait()
            # After names comes another batch at once, also an empty one: it has the accesses that
            # came before them, or shows that there are none.
            follows = bool(seen.names)
            seen = self._look()
            if seen or follows:
                self._hand_on(seen)
        for _ in range(2):
            self._hand_on(self._look())

    def _wait(self) -> None:
        """Wait for something to observe. Accesses are gathered for a moment, since each batch
        costs the containers processor time; containers and names cannot wait."""
        ready = self._poll.poll(_STARTING_SECONDS if self._starts else _IDLE_SECONDS)
        urgent = {self._watch.descriptor, *(group.descriptor for group in self._names.values())}
        if ready and not self._starts and not any(number in urgent for number, _ in ready):
            time.sleep(_GATHER_SECONDS)

    def _look(self) -> ObservationBatch:
        seen = ObservationBatch(0, unwatched=list(self._unwatched.values()))
        for change in self._watch.changes():
            self._note(change, seen)
        for known in self._starts.find_known():
            if self._start(known, seen):
                self._starts.end(known.uid)
        for uid in self._starts.list_overdue():
            self._miss(uid, seen)
        seen.missed += self._starts.take_missed()
        for uid, container in self._containers.items():
            if buffer := container.group.drain(_MAX_READS):
                seen.accesses[uid] = buffer
            for one in container.mounts:
                if one.layer is not None:
                    self._read_layer(uid, one, one.layer, seen, last=uid in seen.gone)
        # Then the names: those that the accesses of this batch were made under are in it.
        for device, group in self._names.items():
            self._read_names(device, group, seen)
        for uid in seen.gone:
            self._end(uid)
        seen.at = time.time_ns()
        return seen

    def _note(self, change: ContainerChange, seen: ObservationBatch) -> None:
        if isinstance(change, ContainerFound):
            self._starts.begin(change)
        elif isinstance(change, ContainersLost):
            seen.containers_lost = True
        else:
            self._miss(change.uid, seen)
            self._unwatched.pop(change.uid, None)
            if change.uid in self._containers:
                seen.gone.append(change.uid)

    def _leave(self, uid: Uid, keys: Collection[str] | None, seen: ObservationBatch) -> None:
        """A container can write these volumes unseen until it ends; None: any volume."""
        if keys is None or keys:
            self._unwatched[uid] = keys
            seen.unwatched.append(keys)
            seen.news = True

    def _miss(self, uid: Uid, seen: ObservationBatch) -> None:
        """A container ended, or was given up; perhaps it was not marked before."""
        if self._starts.miss(uid):
            self._leave(uid, None, seen)

    def _start(self, known: KnownContainer, seen: ObservationBatch) -> bool:
        """Mark the mounts of a container. False: they are not there yet."""
        uid, process, pod, planned, chosen = known
        if not chosen.mounts:
            if chosen.unseen:
                seen.missed.append(MissedContainer(uid, pod, planned, (), chosen.unseen))
            self._leave(uid, writable_unseen(planned, []), seen)
            return True
        try:
            container = mark_container(uid, pod, planned, process, chosen.mounts)
        except OSError as error:  # the kernel limits how many containers can be watched
            wholes, why = {one.volume.whole for one in chosen.mounts}, f"fanotify: {error.strerror}"
            seen.missed.append(MissedContainer(uid, pod, planned, wholes, chosen.unseen, why))
            self._leave(uid, writable_unseen(planned, []), seen)
            return True
        if container is not None:
            self._follow(container, seen)
        return container is not None

    def _follow(self, container: WatchedContainer, seen: ObservationBatch) -> None:
        """Read what a container does from now on."""
        uid, planned, process = container.uid, container.planned, container.process
        marked = [one.planned for one in container.mounts]
        self._leave(uid, writable_unseen(planned, marked), seen)
        self._watch_names(container)
        container.late = process.running or has_run(process.pid)
        if container.late:
            seen.unwatched.append(writable_unseen(planned, []))
        container.watched_at = time.time_ns()
        self._containers[uid] = container
        self._poll.register(container.group.descriptor, select.EPOLLIN)
        seen.found.append(container)

    def _read_layer(
        self, uid: Uid, mount: WatchedMount, layer: Layer, seen: ObservationBatch, *, last: bool
    ) -> None:
        """What a layer reported. Of a container that is gone, everything: the layer ends."""
        if last:
            threading.Thread(target=layer.finish, name="clew-layer-end", daemon=True).start()
        for _ in range(_MAX_READS if not last else _LAST_READS):
            if last:
                select.select([layer.descriptor], [], [], _LAYER_SECONDS)
            try:
                data = os.read(layer.descriptor, 1 << 20)
            except BlockingIOError:
                return
            if not data:  # the layer has ended
                if layer.descriptor in self._layers:
                    self._layers.remove(layer.descriptor)
                    self._poll.unregister(layer.descriptor)
                return
            seen.layers.append((uid, mount, data))

    def _watch_names(self, container: WatchedContainer) -> None:
        for one in list(container.mounts):
            if one.layer is not None:
                self._layers.add(one.layer.descriptor)
                self._layer_processes.add(one.layer.pid)
                self._poll.register(one.layer.descriptor, select.EPOLLIN)
                continue
            if one.mount.device in self._names:
                continue
            group = EventGroup(processes=True)
            try:
                group.mark_filesystem(one.mount.root)
            except OSError as error:
                group.close()
                container.fail(one.planned, f"names that change are not reported: {error.strerror}")
                continue
            self._names[one.mount.device] = group
            self._poll.register(group.descriptor, select.EPOLLIN)

    def _read_names(self, device: int, group: EventGroup, seen: ObservationBatch) -> None:
        mounts = [
            one.mount
            for container in self._containers.values()
            for one in container.mounts
            if one.mount.device == device and one.layer is None
        ]
        for _ in range(_MAX_READS):
            buffer = group.read()
            if not buffer:
                return
            events = list(parse_events(buffer))
            processes: dict[int, tuple[Uid | None, bool]] = {}
            for event in events:
                if event.pid in self._layer_processes:
                    continue  # the layer reports it
                if event.directory and not self._is_watched(event, mounts):
                    _ignore(group, mounts, event.directory)
                    continue
                if event.pid not in processes:
                    processes[event.pid] = container_of_event(event.pid, event.process)
                seen.names.append((device, event, *processes[event.pid]))
            for event in events:
                if event.process >= 0:
                    os.close(event.process)

    def _is_watched(self, event: FileEvent, mounts: list[VolumeMount]) -> bool:
        """Whether a directory of the event is on a watched volume."""
        if event.mask & ON_DIRECTORY or len(self._inside) > _MAX_DIRECTORIES:
            self._inside.clear()
        for handle in (event.directory, event.new_directory):
            if handle not in self._inside:
                self._inside[handle] = bool(handle) and any(
                    mount.resolve(handle) is not None for mount in mounts
                )
            if self._inside[handle]:
                return True
        return False

    def _end(self, uid: Uid) -> None:
        container = self._containers.pop(uid)
        self._poll.unregister(container.group.descriptor)
        layers = [one.layer for one in container.mounts if one.layer is not None]
        for layer in layers:
            self._layer_processes.discard(layer.pid)
            if layer.descriptor in self._layers:
                self._layers.remove(layer.descriptor)
                self._poll.unregister(layer.descriptor)
        devices = {
            one.mount.device
            for other in self._containers.values()
            for one in other.mounts
            if one.layer is None
        }
        for device in [one for one in self._names if one not in devices]:
            group = self._names.pop(device)
            self._poll.unregister(group.descriptor)
            group.close()

    def _hand_on(self, seen: ObservationBatch) -> None:
        with self._ready:
            self._ready.wait_for(lambda: self._waiting < MAX_WAITING_BYTES or self._stopping)
            self._batches.append(seen)
            self._waiting += seen.size
            self._ready.notify_all()


def _raise_priority() -> None:
    """A container is marked before its program runs only if this thread does not wait long: for the
    interpreter, which other threads have, or for a CPU."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    with suppress(OSError):  # it takes a capability
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _PRIORITY)


def _ignore(group: EventGroup, mounts: list[VolumeMount], directory: bytes) -> None:
    """Hear no more of a directory outside of all watched volumes: on a disk that the node shares,
    these are most. Fails for a directory that is gone, which is the same."""
    if not mounts:
        return
    try:
        descriptor = mounts[0].open(directory, os.O_PATH)
    except OSError:
        return
    try:
        group.ignore_directory(descriptor)
    except OSError as error:
        _LOG.debug("a directory cannot be ignored: %s", error)
    finally:
        os.close(descriptor)
