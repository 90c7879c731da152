"""Say in one sentence why a Pod is on its node."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clew.placement.expected_latencies import ExpectedLatencies
from clew.placement.request import MAX_MS, Request

COMPONENT = "clew-scheduler"
"""The source of events that explain a placement."""
REASONS = ("PlacedByLatency", "PlacedWithReservations")
"""Of these events: the second if a note is in it, or latency did not count."""


class Consideration(NamedTuple):
    """What was considered when a Pod was placed."""

    request: Request
    expected: ExpectedLatencies
    chosen: str
    """Empty if latency did not count."""
    next_best: str
    """The best node besides the chosen one; empty without one."""
    feasible: int
    """How many nodes could have been chosen."""


class Explanation(NamedTuple):
    message: str
    warning: bool

    @property
    def reason(self) -> str:
        return REASONS[self.warning]


def explain(considered: Consideration, node: str) -> Explanation:
    """Why the Pod is on `node`."""
    request, expected = considered.request, considered.expected
    notes = list(request.problems)
    if considered.chosen:
        notes += [f"no latency to {name} is known" for name in expected.unknown]
        message = _describe_choice(considered, node)
    else:
        where = " or ".join(name for name, _ in request.shares) or "its clients"
        message = f"on {node} regardless of latency: none to {where} is known"
    return Explanation("; ".join([message, *notes]), warning=bool(notes or not considered.chosen))


def _describe_choice(considered: Consideration, node: str) -> str:
    request, expected = considered.request, considered.expected
    where = describe_locations(request, expected)
    here = _describe_latency(expected, node)
    if node != considered.chosen:
        there = _describe_latency(expected, considered.chosen)
        return (
            f"on {node}, {here} from {where}: {considered.chosen} was preferred with {there}, but "
            "other criteria of the scheduler counted more"
        )
    if considered.feasible == 1:
        return f"on {node}, {here} from {where}: the only feasible node"
    text = f"on {node}, {here} from {where}: the best of {considered.feasible} feasible nodes"
    if considered.next_best:
        there = _describe_latency(expected, considered.next_best)
        text += f", next {considered.next_best} with {there}"
    return text


def describe_locations(request: Request, expected: ExpectedLatencies) -> str:
    """The locations that count, with their shares if there are several."""
    known = [(name, share) for name, share in request.shares if name not in expected.unknown]
    if len(known) == 1:
        return known[0][0]
    return ", ".join(f"{name} ({share:.0%})" for name, share in known)


def _describe_latency(expected: ExpectedLatencies, node: str) -> str:
    ms = expected.mean_ms.get(node)
    if ms is None:
        return "an unknown latency"
    return f"{ms:.4g} ms" + ("" if node in expected.measured else " (predicted)")


def explain_limit(request: Request, expected: ExpectedLatencies, beyond: Iterable[str]) -> str:
    """Why nodes were rejected: one text for all of them, since kube-scheduler counts equal ones."""
    where = describe_locations(request, expected)
    text = f"farther from {where} than {MAX_MS} {request.max_ms:g}"
    nearest = _describe_nearest(expected, beyond)
    return f"{text} (nearest: {nearest})" if nearest else text


def explain_wait(
    request: Request, expected: ExpectedLatencies, within: Sequence[str], beyond: Iterable[str]
) -> str:
    """Why a Pod has no node: all those within its limit are not feasible."""
    where = describe_locations(request, expected)
    text = f"no feasible node is within {MAX_MS} {request.max_ms:g} of {where}"
    if within:
        return f"{text}: {len(within)} are within it, but cannot take the Pod"
    nearest = _describe_nearest(expected, beyond)
    return f"{text}: the nearest is {nearest}" if nearest else text


def _describe_nearest(expected: ExpectedLatencies, nodes: Iterable[str]) -> str:
    known = [(ms, name) for name in nodes if (ms := expected.farthest_ms.get(name)) is not None]
    if not known:
        return ""
    ms, name = min(known)
    return f"{name} with {ms:.4g} ms"
