"""The queue of ready tasks that wait for free resources."""

import heapq
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from clew.errors import UsageError
from clew.kube.quantities import InvalidQuantity
from clew.pipelines.engine import resources
from clew.pipelines.engine.engine import StartTask
from clew.pipelines.engine.input_resolution import BadInput, fill_placeholders
from clew.pipelines.engine.run_state import Node
from clew.pipelines.tasks.volumes import TaskEnvironment

EnvironmentFor = Callable[[Node, int, Mapping[str, str]], TaskEnvironment]
"""What an attempt of a task gets from its platform settings."""


class AdmittedTask(Struct, frozen=True):
    """A task that starts now, or fails with `error` because its request is invalid."""

    start: StartTask
    environment: TaskEnvironment = field(default_factory=TaskEnvironment)
    error: str | None = None


class AdmissionQueue:
    """The ready tasks of one run. `warn` is called once for each task that can never fit."""

    def __init__(
        self,
        capacity: resources.Capacity,
        environment_for: EnvironmentFor,
        facts: Mapping[str, str],
        warn: Callable[[str], None],
    ) -> None:
        self._delayed: list[tuple[float, int, StartTask, bool]] = []  # a heap, by time and order
        self._order = 0
        self._waiting: resources.ResourceQueue[AdmittedTask] = resources.ResourceQueue(capacity)
        self._held: dict[str, resources.ResourceRequest] = {}  # by the path of a running task
        self._environment_for = environment_for
        self._facts = facts
        self._warn = warn
        self._warned: set[str] = set()

    def add(self, start: StartTask, when: float, *, needs_resources: bool = True) -> None:
        """Queue a task that may start at `when`."""
        self._order += 1
        heapq.heappush(self._delayed, (when, self._order, start, needs_resources))

    @property
    def next_time(self) -> float | None:
        """The time at which the next delayed task may start."""
        return self._delayed[0][0] if self._delayed else None

    def next(self, running: Iterable[str], now: float) -> AdmittedTask | None:
        """Take a task that can start beside those that are running."""
        while self._delayed and self._delayed[0][0] <= now:
            _, _, start, needs_resources = heapq.heappop(self._delayed)
            if not needs_resources:
                return AdmittedTask(start)
            try:
                self._waiting.add(*self._resolve(start))
            except (BadInput, InvalidQuantity, UsageError) as error:  # also: a missing secret
                return AdmittedTask(start, error=f"its platform settings: {error}")
        admitted = self._waiting.next(self._held[path] for path in running)
        if admitted is None:
            return None
        task, self._held[task.start.node.path] = admitted
        return task

    def release(self, path: str) -> None:
        """Free the resources of a task that ended."""
        self._held.pop(path, None)

    def _resolve(self, start: StartTask) -> tuple[AdmittedTask, resources.ResourceRequest]:
        node = start.node
        request = resources.resolve_request(
            node.component.resources,
            lambda value: fill_placeholders(value, node.named_inputs, node, self._facts),
        )
        environment = self._environment_for(node, start.attempt, self._facts)
        if lack := resources.describe_shortage(request, self._waiting.capacity):
            request = resources.ResourceRequest(exclusive=True)
            text = f"{node.task.name} runs alone: it requests more than this machine has: {lack}"
            if text not in self._warned:
                self._warned.add(text)
                self._warn(text)
        request = replace(request, mount_points=environment.mount_points)
        return AdmittedTask(start, environment), request
