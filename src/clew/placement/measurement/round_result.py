"""Several probes of one target, one after another, as one latency.

The median ignores a probe that was delayed, and the deviation says how much they differ.
"""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

PROBES = 5
MOST_FAILURES = 2
"""A round with more failures says nothing."""

_NORMAL = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""


class RoundResult(NamedTuple):
    ms: float
    deviation_ms: float

    def agrees(self, other: "RoundResult") -> bool:
        """Whether the difference may be chance."""
        deviation = max(self.deviation_ms, other.deviation_ms)
        return abs(self.ms - other.ms) <= max(3 * deviation, 0.05 * other.ms, 0.05)


def sum_up_round(samples_ms: Sequence[float], failures: int) -> RoundResult | None:
    """None if too many probes failed."""
    if failures > MOST_FAILURES or not samples_ms:
        return None
    middle = median(samples_ms)
    return RoundResult(middle, _NORMAL * median(abs(ms - middle) for ms in samples_ms))
