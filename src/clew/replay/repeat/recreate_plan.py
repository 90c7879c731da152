"""Plan which executions to repeat, and in which order, to produce a missing content again.

Pure set arithmetic: a candidate execution turns input contents into output contents. The plan has
the fewest executions that lead from the stored contents to the wanted one. The search is exact up
to a limit; beyond it the plan only has no superfluous execution.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from clew.documents.ids import Digest

SEARCH_LIMIT = 20_000
"""Sets of executions to try before any plan without superfluous executions is accepted."""

_USUAL_PLAN = 50
"""Executions: a set that is larger counts as several, because ordering it takes longer."""


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
    useful = _drop_dominated(every)
    possible = _order(useful, wanted)
    if possible is None:
        raise CannotRecreate(_find_missing(wanted, every))
    needed = _find_indispensable(useful, wanted)
    enough = _drop_superfluous(possible, wanted, keep=needed)
    search = _Search(wanted, useful, limit)
    for size in range(len(needed), len(enough)):
        plan = search.within(size, needed)
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
    """Order as many candidates as can run until `wanted` exists; None if it never does. Of those
    that can run, the first that was recorded runs first."""
    by_number = {candidate.number: candidate for candidate in candidates}
    missing = {number: len(one.inputs) for number, one in by_number.items()}
    users: dict[str, list[int]] = {}
    for number, one in by_number.items():
        for content in one.inputs:
            users.setdefault(content, []).append(number)
    ready = [number for number, count in missing.items() if count == 0]
    heapify(ready)
    ran: list[Candidate] = []
    there: set[str] = set()
    while wanted not in there:
        if not ready:
            return None
        candidate = by_number[heappop(ready)]
        new = candidate.outputs - there
        if not new:
            continue
        ran.append(candidate)
        there |= new
        for user in (user for content in new for user in users.get(content, ())):
            missing[user] -= 1
            if missing[user] == 0:
                heappush(ready, user)
    return ran


def _find_indispensable(candidates: Iterable[Candidate], wanted: str) -> list[Candidate]:
    """Find the candidates that every plan has: the only producers of what every plan needs."""
    makers = _index_makers(candidates)
    found: dict[int, Candidate] = {}
    waiting, seen = [wanted], {wanted}
    while waiting:
        producers = makers.get(waiting.pop(), ())
        if len(producers) == 1 and producers[0].number not in found:
            found[producers[0].number] = producers[0]
            new = producers[0].inputs - seen
            seen |= new
            waiting += new
    return [found[number] for number in sorted(found)]


def _index_makers(candidates: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    makers: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        for content in candidate.outputs:
            makers.setdefault(content, []).append(candidate)
    return makers


def _drop_superfluous(
    candidates: list[Candidate], wanted: str, *, keep: Iterable[Candidate]
) -> list[Candidate]:
    """Drop ordered candidates until each of them is needed."""
    kept = _drop_unused(candidates, wanted)
    needed = {candidate.number for candidate in keep}
    used = {wanted}.union(*(candidate.inputs for candidate in kept))
    makers = _index_makers(kept)
    for candidate in reversed(kept):
        # Its users come later, so they were found to be needed.
        only = any(len(makers[content]) == 1 for content in candidate.outputs & used)
        if only or candidate.number in needed:
            continue
        fewer = _order([other for other in kept if other is not candidate], wanted)
        if fewer is not None:
            kept = fewer
            used = {wanted}.union(*(one.inputs for one in kept))
            makers = _index_makers(kept)
    return kept


def _drop_unused(candidates: list[Candidate], wanted: str) -> list[Candidate]:
    """Keep the first producer of each content that is used, of ordered candidates."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        for content in candidate.outputs:
            first.setdefault(content, candidate)
    kept = {first[wanted].number}
    for candidate in reversed(candidates):
        if candidate.number in kept:
            kept |= {first[content].number for content in candidate.inputs}
    return [candidate for candidate in candidates if candidate.number in kept]


def _find_missing(wanted: str, candidates: Sequence[Candidate]) -> frozenset[str]:
    """Find the contents that no candidate produces."""
    made = {content for candidate in candidates for content in candidate.outputs}
    needed = {wanted}.union(*(candidate.inputs for candidate in candidates))
    return frozenset(needed - made) or frozenset({wanted})


def _drop_dominated(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Drop candidates that need at least as much as another one and produce no more. Of equals,
    such as an execution and its repeat, keep the first."""
    first: dict[tuple[frozenset[str], frozenset[Digest]], Candidate] = {}
    for candidate in candidates:
        if candidate.outputs:
            first.setdefault((candidate.inputs, candidate.outputs), candidate)
    makers = _index_makers(first.values())
    return [one for one in first.values() if not _is_dominated(one, makers)]


def _is_dominated(candidate: Candidate, makers: Mapping[str, Sequence[Candidate]]) -> bool:
    """Whether another one can always take its place. It produces each of its outputs, so the
    producers of the rarest one are all that can."""
    rarest = min(candidate.outputs, key=lambda content: len(makers[content]))
    return any(
        other is not candidate
        and other.inputs <= candidate.inputs
        and other.outputs >= candidate.outputs
        for other in makers[rarest]
    )


class _Search:
    """A depth-first search backwards from the wanted content."""

    def __init__(self, wanted: str, candidates: Sequence[Candidate], limit: int) -> None:
        self._wanted = wanted
        self._makers = _index_makers(candidates)
        self._left = limit
        self.exhausted = False

    def within(self, size: int, needed: Sequence[Candidate]) -> list[Candidate] | None:
        """Find a plan with at most `size` executions, `needed` among them."""
        self._tried: set[frozenset[int]] = set()
        return self._extend(tuple(needed), size - len(needed))

    def _extend(self, chosen: tuple[Candidate, ...], room: int) -> list[Candidate] | None:
        found = _order(chosen, self._wanted)
        if found is not None or room == 0:
            return found
        for candidate in self._options(chosen):
            more = (*chosen, candidate)
            numbers = frozenset(one.number for one in more)
            if numbers in self._tried:
                continue
            if self._left <= 0:
                self.exhausted = True
                return None
            self._left -= 1 + len(more) // _USUAL_PLAN
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
