"""Decide whether a task fits beside the running ones. Pure: plain numbers, no IO.

A task takes what it requests or, as on a cluster, its limit if it requests nothing. A task that
requests more than the machine has runs alone. Later tasks that fit may overtake one that does not,
but only `MAX_OVERTAKES` times, so that no task starves.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from clew.kube.quantities import parse_quantity
from clew.pipelines.spec.ir import Resources

MAX_OVERTAKES = 16
"""How many tasks may start before the one that has waited longest."""
MIN_CORES = 0.1
"""Each task counts for at least this many cores, so that tasks without a request are limited."""

Item = TypeVar("Item")


class Capacity(Struct, frozen=True):
    """The resources of a machine; memory in bytes."""

    cores: float
    memory: float
    gpus: int = 0
    max_tasks: int | None = None
    """The user's limit on parallel tasks."""

    @property
    def max_parallel(self) -> int:
        """An upper bound of the tasks that run at once."""
        return self.max_tasks or int(self.cores / MIN_CORES) + 1


class ResourceRequest(Struct, frozen=True):
    """The resources that a task takes while it runs."""

    cores: float = 1.0
    memory: float = 0.0
    gpus: float = 0.0
    exclusive: bool = False
    """It runs alone."""
    mount_points: frozenset[tuple[str, str]] = frozenset()
    """Pairs of a path and the directory it must lead to while the task runs."""


def resolve_request(resources: Resources, fill: Callable[[Any], Any]) -> ResourceRequest:
    """The request of a task, with its placeholders replaced by `fill`."""

    def number(value: Any, default: float) -> float:
        return default if value is None else max(0.0, float(parse_quantity(fill(value)).value))

    return ResourceRequest(
        cores=max(MIN_CORES, number(resources.cpu, 1.0)),
        memory=number(resources.memory, 0.0),
        gpus=number(resources.accelerators, 0.0),
    )


def describe_shortage(request: ResourceRequest, capacity: Capacity) -> str | None:
    """Say what the machine lacks to ever run the task; None if it can fit."""
    lacks = []
    if request.cores > capacity.cores:
        lacks.append(f"{request.cores:g} cores of {capacity.cores:g}")
    if request.memory > capacity.memory:
        lacks.append(f"{request.memory / 2**30:.3g} GiB of memory of {capacity.memory / 2**30:.3g}")
    if request.gpus > capacity.gpus:
        lacks.append(f"{request.gpus:g} accelerators of {capacity.gpus}")
    return ", ".join(lacks) or None


def fits(request: ResourceRequest, held: Iterable[ResourceRequest], capacity: Capacity) -> bool:
    """Whether a task can start beside the running ones, which hold `held`."""
    running = list(held)
    if request.exclusive or any(other.exclusive for other in running):
        return not running
    if capacity.max_tasks is not None and len(running) >= capacity.max_tasks:
        return False
    mounted = {path: target for other in running for path, target in other.mount_points}
    if any(mounted.get(path, target) != target for path, target in request.mount_points):
        return False
    rounding = 1e-9  # ten times 0.1 cores is not exactly 1
    return (
        sum(other.cores for other in running) + request.cores <= capacity.cores + rounding
        and sum(other.memory for other in running) + request.memory <= capacity.memory
        and sum(other.gpus for other in running) + request.gpus <= capacity.gpus
    )


class ResourceQueue(Generic[Item]):
    """Tasks that wait for resources: one first-in-first-out queue for each distinct request."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self._queues: dict[ResourceRequest, deque[tuple[int, Item]]] = {}
        self._count = 0
        self._overtakes = 0

    def add(self, item: Item, request: ResourceRequest) -> None:
        self._count += 1
        self._queues.setdefault(request, deque()).append((self._count, item))

    def next(self, held: Iterable[ResourceRequest]) -> tuple[Item, ResourceRequest] | None:
        """Take the task that has waited longest of those that fit now."""
        running = list(held)
        by_age = sorted(self._queues, key=lambda request: self._queues[request][0][0])
        for position, request in enumerate(by_age):
            if position and self._overtakes >= MAX_OVERTAKES:
                return None
            if fits(request, running, self.capacity):
                self._overtakes = self._overtakes + 1 if position else 0
                queue = self._queues[request]
                _, item = queue.popleft()
                if not queue:
                    del self._queues[request]
                return item, request
        return None
