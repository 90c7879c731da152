"""Plan which executions to repeat, and in which order, to produce a missing content again.

Pure set arithmetic: a candidate execution turns input contents into output contents. The plan has
the fewest executions that lead from the stored contents to the wanted one. The search is exact up
to a limit; beyond it the plan only has no superfluous execution.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from clew.documents.ids import Digest

SEARCH_LIMIT = 20_000
"""Sets of executions to try before any plan without superfluous executions is accepted."""


@dataclass(frozen=True)
class Candidate:
    """An execution that could be repeated. Contents that are stored already are left out."""

    number: int
    inputs: frozenset[str]
    outputs: frozenset[Digest]


FindProducers = Callable[[str], Iterable[Candidate]]
"""Finds the executions that can produce a content which is not stored."""


class CannotRecreate(Exception):
    """The content cannot be produced."""

    def __init__(self, missing: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(missing)))
        self.missing = missing
        """Contents that are needed and that no execution produces."""


def plan_recreation(
    wanted: str, find_producers: FindProducers, *, limit: int = SEARCH_LIMIT
) -> list[Candidate]:
    """Find the fewest executions that produce `wanted`, in the order to run them."""
    every = _drop_unneeded_outputs(wanted, _find_candidates(wanted, find_producers))
    possible = _order(every, wanted)
    if possible is None:
        raise CannotRecreate(_find_missing(wanted, every))
    enough = _drop_superfluous(possible, wanted)
    search = _Search(wanted, _drop_dominated(every), limit)
    for size in range(1, len(enough)):
        plan = search.within(size)
        if plan is not None:
            return plan
        if search.exhausted:
            break
    return enough


def _find_candidates(wanted: str, find_producers: FindProducers) -> list[Candidate]:
    """Find every execution that may contribute, in the order they first ran."""
    candidates: dict[int, Candidate] = {}
    waiting, seen = [wanted], {wanted}
    while waiting:
        for candidate in find_producers(waiting.pop()):
            candidates[candidate.number] = candidate
            new = candidate.inputs - seen
            seen |= new
            waiting += sorted(new)
    return [candidates[number] for number in sorted(candidates)]


def _drop_unneeded_outputs(wanted: str, candidates: list[Candidate]) -> list[Candidate]:
    """Drop outputs that no candidate needs."""
    needed = frozenset({wanted}).union(*(candidate.inputs for candidate in candidates))
    return [replace(candidate, outputs=candidate.outputs & needed) for candidate in candidates]


def _order(candidates: Iterable[Candidate], wanted: str) -> list[Candidate] | None:
    """Order as many candidates as can run until `wanted` exists; None if it never does."""
    ran: list[Candidate] = []
    there: set[str] = set()
    left = sorted(candidates, key=lambda candidate: candidate.number)
    while wanted not in there:
        ready = next((candidate for candidate in left if candidate.inputs <= there), None)
        if ready is None:
            return None
        left.remove(ready)
        if not ready.outputs <= there:
            ran.append(ready)
            there |= ready.outputs
    return ran


def _drop_superfluous(candidates: list[Candidate], wanted: str) -> list[Candidate]:
    kept = list(candidates)
    for candidate in reversed(candidates):
        fewer = _order([other for other in kept if other is not candidate], wanted)
        if fewer is not None:
            kept = fewer
    return kept


def _find_missing(wanted: str, candidates: Sequence[Candidate]) -> frozenset[str]:
    """Find the contents that no candidate produces."""
    made = {content for candidate in candidates for content in candidate.outputs}
    needed = {wanted}.union(*(candidate.inputs for candidate in candidates))
    return frozenset(needed - made) or frozenset({wanted})


def _drop_dominated(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Drop candidates that need at least as much as another one and produce no more. Of equals,
    such as an execution and its repeat, keep the first."""
    kept: list[Candidate] = []
    for candidate in candidates:
        if not any(_dominates(other, candidate) for other in kept):
            kept = [other for other in kept if not _dominates(candidate, other)]
            kept.append(candidate)
    return kept


def _dominates(a: Candidate, b: Candidate) -> bool:
    return a.inputs <= b.inputs and a.outputs >= b.outputs


class _Search:
    """A depth-first search backwards from the wanted content."""

    def __init__(self, wanted: str, candidates: Sequence[Candidate], limit: int) -> None:
        self._wanted = wanted
        self._makers: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            for content in candidate.outputs:
                self._makers.setdefault(content, []).append(candidate)
        self._left = limit
        self.exhausted = False

    def within(self, size: int) -> list[Candidate] | None:
        """Find a plan with at most `size` executions."""
        self._tried: set[frozenset[int]] = set()
        return self._extend((), size)

    def _extend(self, chosen: tuple[Candidate, ...], room: int) -> list[Candidate] | None:
        found = _order(chosen, self._wanted)
        if found is not None or room == 0:
            return found
        for candidate in self._options(chosen):
            more = (*chosen, candidate)
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

    def _options(self, chosen: tuple[Candidate, ...]) -> list[Candidate]:
        """Candidates to add next.

        Every input needs a producer, so if one has none yet, branch on the input with the fewest
        producers. If all inputs have producers that wait for each other, any other producer of any
        input may break the cycle.
        """
        made = {content for candidate in chosen for content in candidate.outputs}
        needed = {self._wanted}.union(*(candidate.inputs for candidate in chosen))
        open_needs = needed - made
        if open_needs:
            hardest = min(open_needs, key=lambda need: (len(self._makers.get(need, ())), need))
            return self._makers.get(hardest, [])
        others = {w.number: w for need in needed for w in self._makers[need] if w not in chosen}
        return [others[number] for number in sorted(others)]
