"""Which nodes are to measure which locations next.

Pods go to the best node of a location. So it is worth measuring where a node might be better than
the best that is certain, and nothing else: not every uncertain latency.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from clew.placement.latency_estimates import Estimates

MOST_PER_NODE = 4
"""No node is asked for more at once: probes cost it little, but not nothing."""


DOUBT = 3
"""A latency may be this many errors better than predicted: one in three is not within one."""


class NextMeasurement(NamedTuple):
    """`gain_ms`: how much better the node may be than the best; infinite if nothing is known."""

    node: str
    location: str
    gain_ms: float


def choose_measurements(
    estimates: Estimates, *, nodes: Sequence[str], locations: Iterable[str], limit: int
) -> list[NextMeasurement]:
    """At most `limit` pairs without a measurement; each location has its most promising first."""
    ranked = [
        (rank, -candidate.gain_ms, candidate)
        for location in set(locations)
        for rank, candidate in enumerate(_rank_candidates(estimates, location, nodes))
    ]
    chosen: list[NextMeasurement] = []
    asked: dict[str, int] = {}
    for _, _, candidate in sorted(ranked):
        if len(chosen) >= limit:
            break
        count = asked.get(candidate.node, 0)
        if count < MOST_PER_NODE:
            asked[candidate.node] = count + 1
            chosen.append(candidate)
    return chosen


def _rank_candidates(
    estimates: Estimates, location: str, nodes: Sequence[str]
) -> list[NextMeasurement]:
    """The nodes that may be better than the best, most promising first.

    Where nothing tells them apart, the order is by a hash, so that the nodes are of many sites.
    """
    known = estimates.to_location(location)
    certain = min(
        (it.ms + it.error_ms for node in nodes if (it := known.get(node))), default=math.inf
    )
    candidates = []
    for node in nodes:
        estimate = known.get(node)
        if estimate is None:
            candidates.append(NextMeasurement(node, location, math.inf))
        elif not estimate.measured:
            gain = certain - (estimate.ms - DOUBT * estimate.error_ms)
            if gain > 0:
                candidates.append(NextMeasurement(node, location, gain))
    return sorted(
        candidates, key=lambda it: (-it.gain_ms, crc32(f"{it.node}/{it.location}".encode()))
    )
