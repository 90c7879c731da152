"""The queue of ready tasks that wait for free resources."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from clew.pipelines.engine.engine import StartTask
from clew.pipelines.engine.input_resolution import BadInput, fill_placeholders
from clew.pipelines.engine.resources import (
    Capacity,
    InvalidQuantity,
    ResourceQueue,
    ResourceRequest,
    describe_shortage,
    resolve_request,
)
from clew.pipelines.tasks.volumes import TaskEnvironment, Volumes


class AdmittedTask(Struct, frozen=True):
    """A task that may begin; or cannot, since what it asks for cannot be had."""

    what: StartTask
    given: TaskEnvironment = field(default_factory=TaskEnvironment)
    error: str | None = None


class AdmissionQueue:
    """Those of one run. `say` is told of tasks that ask for more than there is."""

    def __init__(
        self, room: Capacity, volumes: Volumes, facts: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        self._later: list[tuple[float, int, StartTask, bool]] = []  # by when, and by who came first
        self._order = 0
        self._waiting: ResourceQueue[AdmittedTask] = ResourceQueue(room)
        self._needs: dict[str, ResourceRequest] = {}
        self._volumes = volumes
        self._facts = facts
        self._say = say
        self._said: set[str] = set()

    def add(self, what: StartTask, when: float, *, bare: bool = False) -> None:
        """Its turn comes at that time, or later. `bare`: it needs nothing of the machine."""
        self._order += 1
        heapq.heappush(self._later, (when, self._order, what, bare))

    @property
    def soonest(self) -> float | None:
        """When the next one's time comes."""
        return self._later[0][0] if self._later else None

    def next(self, busy: Iterable[str], now: float) -> AdmittedTask | None:
        """The one that begins now, beside those that are `busy`."""
        while self._later and self._later[0][0] <= now:
            _, _, what, bare = heapq.heappop(self._later)
            turn, wanted = (AdmittedTask(what), ResourceRequest()) if bare else self._wanted(what)
            if bare or turn.error is not None:
                return turn
            self._waiting.add(turn, wanted)
        found = self._waiting.next(self._needs[path] for path in busy)
        if found is None:
            return None
        turn, self._needs[turn.what.node.path] = found
        return turn

    def left(self, path: str) -> None:
        """It is busy no more."""
        self._needs.pop(path, None)

    def _wanted(self, what: StartTask) -> tuple[AdmittedTask, ResourceRequest]:
        node = what.node
        try:
            wanted = resolve_request(
                node.component.resources,
                lambda value: fill_placeholders(value, node.named_inputs, node, self._facts),
            )
            given = self._volumes.given(node, what.attempt, self._facts)
        except (BadInput, InvalidQuantity) as error:
            return AdmittedTask(what, error=f"what it asks for: {error}"), ResourceRequest()
        if lacks := describe_shortage(wanted, self._waiting.room):
            wanted = ResourceRequest(alone=True)
            text = f"{node.task.name} runs alone: it asks for more than this machine has: {lacks}"
            if text not in self._said:
                self._said.add(text)
                self._say(text)
        return AdmittedTask(what, given), replace(wanted, places=given.places)
