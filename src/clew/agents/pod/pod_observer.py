"""Read what the layers of the Pod's containers report.

A layer ends when its container has ended and everything was reported; then the container is gone.
The reports wait in the pipe of their layer while the witness is slow, and the container with them.
"""

import logging
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from clew.agents.node.containers.watched_container import WatchedContainer, WatchedMount
from clew.agents.node.kernel.fanotify import EventGroup
from clew.agents.node.layer.layer_mount import Layer
from clew.agents.node.observation_batch import ObservationBatch

_LOG = logging.getLogger("clew.agents")
_READ_BYTES = 1 << 20
_MAX_WAITING = 64 << 20
"""Bytes that may wait for the other thread."""
_WAIT_MILLISECONDS = 1000
_STOP_SECONDS = 10.0
"""How long a container may still run when the sidecar is told to end: it is told after them."""


class NoEvents(EventGroup):
    """In place of a queue of the kernel: layers report everything."""

    def __init__(self) -> None:
        pass

    def close(self) -> None:
        pass


class _Source(NamedTuple):
    """What becomes readable: the pipe of a layer, or, without one, the end of a container."""

    container: WatchedContainer
    mount: WatchedMount | None = None
    layer: Layer | None = None


class PodObserver:
    """An `Observer` of the containers that are added to it."""

    def __init__(self, is_expecting: Callable[[], bool]) -> None:
        """`is_expecting`: whether a container runs that will be added. A short one may have ended
        before Kubernetes says which it was."""
        self._is_expecting = is_expecting
        self._poll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll.register(self._wake, select.EPOLLIN)
        self._sources: dict[int, _Source] = {}
        self._added: deque[tuple[WatchedContainer, int]] = deque()
        self._batches: deque[ObservationBatch] = deque()
        self._waiting = 0
        self._ready = threading.Condition()
        self._stop_at: float | None = None

    def add(self, container: WatchedContainer, process: int) -> None:
        """Observe a container, from any thread. `process`: a descriptor of its first process,
        which this closes."""
        self._added.append((container, process))
        os.eventfd_write(self._wake, 1)

    def next_batch(self, seconds: float) -> ObservationBatch | None:
        with self._ready:
            self._ready.wait_for(lambda: bool(self._batches), seconds)
            if not self._batches:
                return None
            taken = self._batches.popleft()
            self._waiting -= taken.size
            self._ready.notify_all()
            return taken

    def stop(self) -> None:
        with self._ready:
            self._stop_at = time.monotonic() + _STOP_SECONDS
            self._ready.notify_all()
        os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        while not self._is_finished():
            seen = self._look()
            if seen:
                self._hand_on(seen)

    def _is_finished(self) -> bool:
        if self._stop_at is None:
            return False
        idle = not (self._is_expecting() or self._added or self._sources)
        return idle or time.monotonic() > self._stop_at

    def _look(self) -> ObservationBatch:
        seen = ObservationBatch(0)
        ready = [number for number, _ in self._poll.poll(_WAIT_MILLISECONDS / 1000)]
        if self._wake in ready:
            os.eventfd_read(self._wake)
        while self._added:
            self._begin(*self._added.popleft(), seen)
        touched = {self._sources[one].container.uid for one in ready if one in self._sources}
        for number in ready:
            if number in self._sources:
                self._read(number, self._sources[number], seen)
        present = {source.container.uid for source in self._sources.values()}
        seen.gone += sorted(touched - present)
        seen.at = time.time_ns()
        return seen

    def _begin(self, container: WatchedContainer, process: int, seen: ObservationBatch) -> None:
        seen.found.append(container)
        self._register(process, _Source(container))
        for mount in container.mounts:
            if mount.layer is not None:
                self._register(mount.layer.descriptor, _Source(container, mount, mount.layer))

    def _register(self, descriptor: int, source: _Source) -> None:
        self._sources[descriptor] = source
        self._poll.register(descriptor, select.EPOLLIN)

    def _read(self, number: int, source: _Source, seen: ObservationBatch) -> None:
        if source.mount is None or source.layer is None:
            self._forget(number)
            os.close(number)
            return
        data = os.read(number, _READ_BYTES)
        if data:
            seen.layers.append((source.container.uid, source.mount, data))
            return
        self._forget(number)  # the witness closes it
        if source.layer.has_failed():
            _LOG.error("a layer of the container %s has failed", source.container.uid)
            source.container.fail(source.mount.planned, "the layer has failed")

    def _forget(self, number: int) -> None:
        del self._sources[number]
        self._poll.unregister(number)

    def _hand_on(self, seen: ObservationBatch) -> None:
        with self._ready:
            self._ready.wait_for(lambda: self._waiting < _MAX_WAITING or self._stop_at is not None)
            self._batches.append(seen)
            self._waiting += seen.size
            self._ready.notify_all()
