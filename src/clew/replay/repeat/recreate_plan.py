"""Which executions to run again, and in which order, so that some bytes are there once more.

A question of sets, answered without looking at any file: an execution (`Work`) turns contents
it needs into contents it makes, and the fewest that lead from what is there to what is wanted
are looked for. The answer is exact; only where there are so many ways that looking at all of
them would take longer than running a few executions, it is merely one with nothing superfluous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

LIMIT = 20_000
"""Sets of executions that are considered before any good one is good enough."""


@dataclass(frozen=True)
class Work:
    """An execution that could be run again. Contents that are there already do not count."""

    number: int
    needs: frozenset[str]
    makes: frozenset[str]


Makers = Callable[[str], Iterable[Work]]
"""Who can make a content that is not there."""


class Impossible(Exception):
    """It cannot be made."""

    def __init__(self, lacking: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(lacking)))
        self.lacking = lacking
        """Contents that are needed, and that nothing can make."""


def fewest(wanted: str, makers: Makers, *, limit: int = LIMIT) -> list[Work]:
    """The fewest executions after which `wanted` is there, in the order to run them."""
    every = _in_question(wanted, _reachable(wanted, makers))
    possible = _in_order(every, wanted)
    if possible is None:
        raise Impossible(_lacking(wanted, every))
    enough = _without_superfluous(possible, wanted)
    search = _Search(wanted, _best(every), limit)
    for size in range(1, len(enough)):
        found = search.within(size)
        if found is not None:
            return found
        if search.exhausted:
            break
    return enough


def _reachable(wanted: str, makers: Makers) -> list[Work]:
    """Every execution that may play a part, in the order they first ran."""
    found: dict[int, Work] = {}
    waiting, seen = [wanted], {wanted}
    while waiting:
        for work in makers(waiting.pop()):
            found[work.number] = work
            new = work.needs - seen
            seen |= new
            waiting += sorted(new)
    return [found[number] for number in sorted(found)]


def _in_question(wanted: str, works: list[Work]) -> list[Work]:
    """The same, without products that nobody needs."""
    needed = frozenset({wanted}).union(*(work.needs for work in works))
    return [replace(work, makes=work.makes & needed) for work in works]


def _in_order(works: Iterable[Work], wanted: str) -> list[Work] | None:
    """As many of these as can run, one after the other, until `wanted` is there."""
    ran: list[Work] = []
    there: set[str] = set()
    left = sorted(works, key=lambda work: work.number)
    while wanted not in there:
        ready = next((work for work in left if work.needs <= there), None)
        if ready is None:
            return None
        left.remove(ready)
        if not ready.makes <= there:
            ran.append(ready)
            there |= ready.makes
    return ran


def _without_superfluous(works: list[Work], wanted: str) -> list[Work]:
    kept = list(works)
    for work in reversed(works):
        fewer = _in_order([other for other in kept if other is not work], wanted)
        if fewer is not None:
            kept = fewer
    return kept


def _lacking(wanted: str, works: Sequence[Work]) -> frozenset[str]:
    """What stands in the way: contents that no execution makes, on the way to `wanted`."""
    made = {content for work in works for content in work.makes}
    needed = {wanted}.union(*(work.needs for work in works))
    return frozenset(needed - made) or frozenset({wanted})


def _best(works: Sequence[Work]) -> list[Work]:
    """Without those for which another does as well: needs no more, and makes no less. Where two
    are alike, as an execution and its repetition, the first stays."""
    kept: list[Work] = []
    for work in works:
        if not any(_as_good(other, work) for other in kept):
            kept = [other for other in kept if not _as_good(work, other)]
            kept.append(work)
    return kept


def _as_good(one: Work, other: Work) -> bool:
    return one.needs <= other.needs and one.makes >= other.makes


class _Search:
    """Looks from the wanted content backwards: whatever is chosen needs makers of its needs."""

    def __init__(self, wanted: str, works: Sequence[Work], limit: int) -> None:
        self._wanted = wanted
        self._makers: dict[str, list[Work]] = {}
        for work in works:
            for content in work.makes:
                self._makers.setdefault(content, []).append(work)
        self._left = limit
        self.exhausted = False

    def within(self, size: int) -> list[Work] | None:
        """A way with at most `size` executions."""
        self._tried: set[frozenset[int]] = set()
        return self._extend((), size)

    def _extend(self, chosen: tuple[Work, ...], room: int) -> list[Work] | None:
        found = _in_order(chosen, self._wanted)
        if found is not None or room == 0:
            return found
        for work in self._options(chosen):
            more = (*chosen, work)
            numbers = frozenset(one.number for one in more)
            if numbers in self._tried:
                continue
            if self._left == 0:
                self.exhausted = True
                return None
            self._left -= 1
            self._tried.add(numbers)
            found = self._extend(more, room - 1)
            if found is not None:
                return found
        return None

    def _options(self, chosen: tuple[Work, ...]) -> list[Work]:
        """Who may come next. In a way without superfluous executions every need of each is met:
        so a need that nobody chosen meets has to be met by one of its makers. Where all are met
        but wait for each other, any other maker of any need may be the one to begin."""
        made = {content for work in chosen for content in work.makes}
        needed = {self._wanted}.union(*(work.needs for work in chosen))
        open_needs = needed - made
        if open_needs:
            hardest = min(open_needs, key=lambda need: (len(self._makers.get(need, ())), need))
            return self._makers.get(hardest, [])
        others = {w.number: w for need in needed for w in self._makers[need] if w not in chosen}
        return [others[number] for number in sorted(others)]
