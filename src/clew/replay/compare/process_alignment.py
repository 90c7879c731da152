"""Match the processes of two executions.

Both process trees are walked from their roots. Among the children of two matched processes, those
with the same command are matched first, then similar ones, each in the order they started. So one
side may have more, and racing processes may come in either order. What is left is matched across
the whole tree, because a program may have another parent.
"""

import itertools
import os
import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from clew.prov.queries.execution_record import Activity, ExecutionRecord

_VARYING = re.compile(r"[0-9a-fA-F]{6,}|\d+|(?<=tmp)\w+")
_MAX_COMPARED = 40
"""Larger groups are matched by order, not by similarity."""


@dataclass(frozen=True)
class ProcessPair:
    """The same process in two executions."""

    a: Activity
    b: Activity

    def __hash__(self) -> int:
        return hash((self.a.key, self.b.key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProcessPair) and (self.a.key, self.b.key) == (
            other.a.key,
            other.b.key,
        )


@dataclass(frozen=True)
class Alignment:
    pairs: tuple[ProcessPair, ...]
    """The executions themselves first, then the processes in the order `a` started them."""
    only_a: tuple[Activity, ...]
    only_b: tuple[Activity, ...]

    @cached_property
    def by_a(self) -> dict[int, ProcessPair]:
        return {pair.a.key: pair for pair in self.pairs}

    @cached_property
    def by_b(self) -> dict[int, ProcessPair]:
        return {pair.b.key: pair for pair in self.pairs}


def align_processes(a: ExecutionRecord, b: ExecutionRecord) -> Alignment:
    """Match the processes of `a` and `b`."""
    children_a, children_b = _children(a), _children(b)
    partner = {a.itself.key: b.itself.key}
    waiting: deque[tuple[int, int]] = deque()

    def take(pairs: Iterable[tuple[Activity, Activity]]) -> None:
        for a, b in pairs:
            partner[a.key] = b.key
            waiting.append((a.key, b.key))

    take(
        _match_groups(children_a[a.itself.key], children_b[b.itself.key], (*_PASSES, lambda _: ()))
    )
    while waiting:
        one, other = waiting.popleft()
        take(_match_groups(children_a[one], children_b[other], _PASSES))
    taken = set(partner.values())
    rest_a = [process for process in a.processes if process.key not in partner]
    rest_b = [process for process in b.processes if process.key not in taken]
    take(_match_groups(rest_a, rest_b, (_exact_command,)))
    taken = set(partner.values())
    return Alignment(
        pairs=tuple(
            ProcessPair(process, b.activities[partner[process.key]])
            for process in (a.itself, *a.processes)
            if process.key in partner
        ),
        only_a=tuple(process for process in a.processes if process.key not in partner),
        only_b=tuple(process for process in b.processes if process.key not in taken),
    )


GroupKey = Callable[[Activity], Hashable]


def _exact_command(process: Activity) -> Hashable:
    return process.exe, *process.command, process.cwd


_PASSES: tuple[GroupKey, ...] = (
    _exact_command,
    lambda process: (process.exe is None, *process.command),
    lambda process: (process.exe, *(_VARYING.sub("#", word) for word in process.command)),
    lambda process: process.exe,
    lambda process: os.path.basename(process.command[0]) if process.command else "",
)
"""Processes that have the same key are paired; each pass is less strict than the one before."""


def _match_groups(
    a: list[Activity], b: list[Activity], kinds: tuple[GroupKey, ...]
) -> list[tuple[Activity, Activity]]:
    pairs: list[tuple[Activity, Activity]] = []
    for kind in kinds:
        groups: dict[Hashable, tuple[list[Activity], list[Activity]]]
        groups = defaultdict(lambda: ([], []))
        for process in a:
            groups[kind(process)][0].append(process)
        for process in b:
            groups[kind(process)][1].append(process)
        new = [
            pair for ours, theirs in groups.values() for pair in _pair_most_similar(ours, theirs)
        ]
        pairs += new
        a = _without(a, {one.key for one, _ in new})
        b = _without(b, {other.key for _, other in new})
    return pairs


def _pair_most_similar(a: list[Activity], b: list[Activity]) -> Iterable[tuple[Activity, Activity]]:
    """Pair two groups: the most similar first, equals in their order."""
    if (
        max(len(a), len(b)) > _MAX_COMPARED
        or len({tuple(process.command) for process in (*a, *b)}) == 1
    ):
        return zip(a, b, strict=False)

    def difference(i: int, j: int) -> float:
        return -SequenceMatcher(None, a[i].command, b[j].command, autojunk=False).ratio()

    pairs = itertools.product(range(len(a)), range(len(b)))
    likeness = [(difference(i, j), abs(i - j), i, j) for i, j in pairs]
    ours: set[int] = set()
    theirs: set[int] = set()
    couples = []
    for _, _, i, j in sorted(likeness):
        if i not in ours and j not in theirs:
            ours.add(i)
            theirs.add(j)
            couples.append((a[i], b[j]))
    return couples


def _without(processes: list[Activity], taken: set[int]) -> list[Activity]:
    return [process for process in processes if process.key not in taken]


def _children(record: ExecutionRecord) -> dict[int, list[Activity]]:
    children: dict[int, list[Activity]] = defaultdict(list)
    for process in record.processes:
        parent = process.parent if process.parent in record.activities else record.itself.key
        assert parent is not None
        children[parent].append(process)
    return children
