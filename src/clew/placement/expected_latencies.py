"""The latencies that a Pod's clients would have on each node, from the estimates for each location.

Estimates count with their errors, so a node of which little is known must be clearly nearer to win.
"""

from collections.abc import Mapping
from typing import NamedTuple

from clew.placement.latency_estimates import Estimate, Estimates

CAUTION = 1.0
"""How many errors are added to an estimate: one covers about five of six true latencies."""


class ExpectedLatencies(NamedTuple):
    """By node; a node is missing if its latency to any known location is unknown."""

    mean_ms: Mapping[str, float]
    """Over all requests."""
    farthest_ms: Mapping[str, float]
    """To the location that is farthest from the node."""
    measured: frozenset[str]
    """The nodes whose latencies are all measured, not predicted."""
    unknown: tuple[str, ...]
    """The locations to which no latency is known."""


def expect_latencies(
    estimates: Estimates, shares: tuple[tuple[str, float], ...]
) -> ExpectedLatencies:
    found = [(share, estimates.to_location(name)) for name, share in shares]
    unknown = tuple(name for (name, _), (_, nodes) in zip(shares, found, strict=True) if not nodes)
    known = [(share, nodes) for share, nodes in found if nodes]
    if not known:
        return ExpectedLatencies({}, {}, frozenset(), unknown)
    if len(known) == 1:
        nodes = known[0][1]
        cautious = {name: one.cautious_ms(CAUTION) for name, one in nodes.items()}
        measured = frozenset(name for name, one in nodes.items() if one.measured)
        return ExpectedLatencies(cautious, cautious, measured, unknown)
    return _combine(known, unknown)


def _combine(
    known: list[tuple[float, Mapping[str, Estimate]]], unknown: tuple[str, ...]
) -> ExpectedLatencies:
    total = sum(share for share, _ in known)
    common = set.intersection(*(set(nodes) for _, nodes in known))
    mean_ms, farthest_ms, measured = {}, {}, set()
    for name in common:
        estimates = [(share, nodes[name]) for share, nodes in known]
        cautious = [(share, one.cautious_ms(CAUTION)) for share, one in estimates]
        mean_ms[name] = sum(share * ms for share, ms in cautious) / total
        farthest_ms[name] = max(ms for _, ms in cautious)
        if all(one.measured for _, one in estimates):
            measured.add(name)
    return ExpectedLatencies(mean_ms, farthest_ms, frozenset(measured), unknown)
