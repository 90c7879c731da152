"""The queue of ready tasks that wait for free resources."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from clew.pipelines.engine.engine import Run
from clew.pipelines.engine.input_resolution import BadInput, filled
from clew.pipelines.engine.resources import Need, NotAQuantity, Room, Waiting, missing, need
from clew.pipelines.tasks.volumes import Given, Volumes


class Turn(Struct, frozen=True):
    """A task that may begin; or cannot, since what it asks for cannot be had."""

    what: Run
    given: Given = field(default_factory=Given)
    error: str | None = None


class Turns:
    """Those of one run. `say` is told of tasks that ask for more than there is."""

    def __init__(
        self, room: Room, volumes: Volumes, facts: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        self._later: list[tuple[float, int, Run, bool]] = []  # by when, and by who came first
        self._order = 0
        self._waiting: Waiting[Turn] = Waiting(room)
        self._needs: dict[str, Need] = {}
        self._volumes = volumes
        self._facts = facts
        self._say = say
        self._said: set[str] = set()

    def add(self, what: Run, when: float, *, bare: bool = False) -> None:
        """Its turn comes at that time, or later. `bare`: it needs nothing of the machine."""
        self._order += 1
        heapq.heappush(self._later, (when, self._order, what, bare))

    @property
    def soonest(self) -> float | None:
        """When the next one's time comes."""
        return self._later[0][0] if self._later else None

    def next(self, busy: Iterable[str], now: float) -> Turn | None:
        """The one that begins now, beside those that are `busy`."""
        while self._later and self._later[0][0] <= now:
            _, _, what, bare = heapq.heappop(self._later)
            turn, wanted = (Turn(what), Need()) if bare else self._wanted(what)
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

    def _wanted(self, what: Run) -> tuple[Turn, Need]:
        node = what.node
        try:
            wanted = need(
                node.component.resources, lambda value: filled(value, node.given, node, self._facts)
            )
            given = self._volumes.given(node, what.attempt, self._facts)
        except (BadInput, NotAQuantity) as error:
            return Turn(what, error=f"what it asks for: {error}"), Need()
        if lacks := missing(wanted, self._waiting.room):
            wanted = Need(alone=True)
            text = f"{node.task.name} runs alone: it asks for more than this machine has: {lacks}"
            if text not in self._said:
                self._said.add(text)
                self._say(text)
        return Turn(what, given), replace(wanted, places=given.places)
