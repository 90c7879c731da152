"""Which of the feasible nodes is best for a Pod, and what each is worth. No IO, no clock.

Everything is compared in milliseconds: the latency that the Pod's clients would have, and what the
Pod says that a replica on the node or a unit of the node's cost is worth to it.

kube-scheduler understands scores from 0 to 10. On a linear scale, nodes that differ little would
have the same score. So the best node alone gets 10, and the others at most 9, on a logarithmic
scale of how much farther they are: 9 for no difference, 5 for 10 ms, 0 from 300 ms on. If the
extender's weight is above 120, the difference of one is worth more than all other criteria of
kube-scheduler together, and the best node always wins; with less it is a trade-off.
"""

import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import NamedTuple

from clew.placement.expected_latencies import ExpectedLatencies
from clew.placement.request import Request

BEST_SCORE = 10
"""kube-scheduler's highest score of an extender."""
CANDIDATES = 100
"""kube-scheduler gives scores to so many nodes at least, if there are more of them. Farther ones
are left out, which spares it the work of scoring them."""

_TIE_RATIO, _TIE_MS = 1.01, 0.02
"""Differences of one in a hundred, or of the jitter of a local network, are none."""
_STEPS = [300 ** ((step + 0.5) / (BEST_SCORE - 1)) - 1 for step in range(BEST_SCORE - 1)]
"""In ms: a node that is farther by more has a lower score."""

Count = Callable[[str], int]


class Decision(NamedTuple):
    chosen: str
    scores: dict[str, int]
    """By node: all those that were asked about."""
    next_best: str
    """The best of the other nodes; empty without one."""


def find_within_limit(
    expected: ExpectedLatencies, limit: float, nodes: Iterable[str]
) -> tuple[list[str], list[str]]:
    """The nodes within the limit, and the others, among them those whose latency is unknown."""
    within: list[str] = []
    beyond: list[str] = []
    for name in nodes:
        ms = expected.farthest_ms.get(name)
        (within if ms is not None and ms <= limit else beyond).append(name)
    return within, beyond


def sum_up(
    request: Request,
    expected: ExpectedLatencies,
    nodes: Iterable[str],
    *,
    replicas: Mapping[str, int],
    costs: Mapping[str, float],
) -> dict[str, float]:
    """What speaks against each node, in ms. `replicas`: of the Pod, by node."""
    mean_ms = expected.mean_ms
    totals = {name: mean_ms[name] for name in nodes if name in mean_ms}
    if request.spread_ms:
        for name in replicas.keys() & totals.keys():
            totals[name] += request.spread_ms * replicas[name]
    if request.cost_ms:
        for name in costs.keys() & totals.keys():
            totals[name] += request.cost_ms * costs[name]
    return totals


def keep_nearest(totals: Mapping[str, float], nodes: Sequence[str]) -> Sequence[str]:
    """The candidates among the nodes: all, if they are not too many."""
    if len(nodes) <= CANDIDATES or not totals:
        return nodes
    return nsmallest(CANDIDATES, totals, key=totals.__getitem__)


def decide(
    uid: str,
    nodes: Sequence[str],
    totals: Mapping[str, float],
    *,
    replicas: Mapping[str, int],
    pods_on: Count,
) -> Decision:
    """Choose a node and score all of them; `totals` has one of them at least.

    Nodes that tie share the Pods: one with fewer replicas wins, then one with fewer Pods of our
    kind (`pods_on`), then the draw by the Pod's uid.
    """
    best = min(totals.values())
    limit = best * _TIE_RATIO + _TIE_MS
    tied = [name for name, total in totals.items() if total <= limit]
    chosen = min(
        tied, key=lambda name: (replicas.get(name, 0), pods_on(name), _draw(uid, name), name)
    )
    scores = dict.fromkeys(nodes, 0)
    for name, total in totals.items():
        scores[name] = score(total - best)
    scores[chosen] = BEST_SCORE
    others = dict(totals)
    del others[chosen]
    return Decision(chosen, scores, min(others, key=others.__getitem__, default=""))


def score(excess_ms: float) -> int:
    """The score of a node that is so much farther than the nearest."""
    return BEST_SCORE - 1 - bisect_left(_STEPS, excess_ms)


def _draw(uid: str, name: str) -> int:
    return zlib.crc32(f"{uid} {name}".encode())
