"""What each node is asked to measure besides its own locations, where there are many of them.

The nearest nodes of each location, whose latencies decide, and those that may be better than these.
Each node also measures a few other nodes, which tells the predictor where it is.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from clew.placement.latency_estimates import Estimates
from clew.placement.measurement.default_locations import DEFAULT_LOCATIONS, choose_own_locations
from clew.placement.prediction.next_measurements import choose_measurements

KEPT_NEAREST = 4
MOST_ASKED = 16
"""Locations that one node is asked for, besides its own."""
NEIGHBOURS = 4


class Request(NamedTuple):
    """What one node is asked to measure."""

    locations: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


def plan_measurements(
    estimates: Estimates,
    *,
    nodes: Sequence[str],
    locations: Collection[str],
    excluded: Collection[tuple[str, str]] = (),
) -> dict[str, Request]:
    """By node; nothing if the nodes measure all locations anyway. `excluded`: pairs of a node and a
    location that cannot be measured."""
    if len(locations) <= DEFAULT_LOCATIONS:
        return {}
    asked: dict[str, dict[str, None]] = {node: {} for node in nodes}
    wanted = [
        *_choose_nearest(estimates, locations),
        *(
            (it.node, it.location)
            for it in choose_measurements(
                estimates, nodes=nodes, locations=locations, limit=len(nodes) + len(excluded)
            )
        ),
    ]
    own = {node: choose_own_locations(node, locations) for node in nodes}
    left_out = frozenset(excluded)
    for node, location in wanted:
        if node not in asked or location in own[node] or (node, location) in left_out:
            continue
        if len(asked[node]) < MOST_ASKED:
            asked[node][location] = None
    neighbours = _choose_neighbours(nodes)
    return {node: Request(tuple(sorted(asked[node])), neighbours[node]) for node in nodes}


def _choose_nearest(estimates: Estimates, locations: Iterable[str]) -> list[tuple[str, str]]:
    """The nearest measured nodes of each location."""
    found = []
    for location in sorted(locations):
        measured = (
            (it.ms, node) for node, it in estimates.to_location(location).items() if it.measured
        )
        found += [(node, location) for _, node in sorted(measured)[:KEPT_NEAREST]]
    return found


def _choose_neighbours(nodes: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """For each node some others, at growing distances on a ring, so that all are connected."""
    ring = sorted(nodes, key=lambda name: (crc32(name.encode()), name))
    return {
        node: tuple(
            sorted({ring[(at + 3**step) % len(ring)] for step in range(NEIGHBOURS)} - {node})
        )
        for at, node in enumerate(ring)
    }
