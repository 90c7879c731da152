"""Round-trip times that were measured between nodes and locations.

A location is a place where clients are: a name with an address that nodes probe. Nodes may also
measure each other, which tells the predictor more about where they are. The time of a pair is the
same in both directions, so a pair has one measurement: the latest, from either end.

The table takes what agents and labels say, which may be wrong: values that no network has are
refused. It does not smooth; an agent publishes the median of several probes and their deviation.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

SHORTEST_MS = 0.001
LONGEST_MS = 10_000.0
"""Times outside of these are errors of measurement, not latencies."""

DRIFT_PER_DAY = 0.02
"""How much, relative to itself, a latency typically moves away from its measurement in a day."""


class Endpoint(NamedTuple):
    """One end of a pair. A node and a location may have the same name."""

    kind: Literal["node", "location"]
    name: str


def node(name: str) -> Endpoint:
    return Endpoint("node", name)


def location(name: str) -> Endpoint:
    return Endpoint("location", name)


class Measurement(NamedTuple):
    """`at` in seconds since the epoch; `deviation_ms` of the probes around their median."""

    ms: float
    at: float
    deviation_ms: float

    def age(self, now: float) -> float:
        """Its age in seconds: none if its clock is ahead of ours."""
        return max(0.0, now - self.at)

    def error_ms(self, now: float) -> float:
        """How far the latency may have moved from `ms`: by noise, and since it was measured."""
        drift = self.ms * DRIFT_PER_DAY * math.sqrt(self.age(now) / 86_400)
        return math.hypot(self.deviation_ms, drift)


def is_plausible(ms: float, deviation_ms: float) -> bool:
    """Whether a network may have this latency."""
    return SHORTEST_MS <= ms <= LONGEST_MS and 0 <= deviation_ms <= LONGEST_MS


class LatencyTable:
    """The latest measurement of each pair."""

    def __init__(self) -> None:
        self._peers: dict[Endpoint, dict[Endpoint, Measurement]] = {}
        self._revision = 0

    @property
    def revision(self) -> int:
        """Grows with each change, so that predictions know whether they are current."""
        return self._revision

    def record(
        self, a: Endpoint, b: Endpoint, ms: float, *, at: float, deviation_ms: float = 0.0
    ) -> bool:
        """Take a measurement; False if it cannot be one, or an older one than is known."""
        if not is_plausible(ms, deviation_ms) or not math.isfinite(at) or a == b:
            return False
        known = self.measurement(a, b)
        if known is not None and known.at > at:
            return False
        measurement = Measurement(ms, at, deviation_ms)
        if measurement == known:
            return True
        self._peers.setdefault(a, {})[b] = measurement
        self._peers.setdefault(b, {})[a] = measurement
        self._revision += 1
        return True

    def measurement(self, a: Endpoint, b: Endpoint) -> Measurement | None:
        return self._peers.get(a, {}).get(b)

    def measurements_to(self, end: Endpoint) -> dict[Endpoint, Measurement]:
        """What is known from other endpoints to this one."""
        return dict(self._peers.get(end, {}))

    def endpoints(self) -> list[Endpoint]:
        """Every endpoint with a measurement, in a fixed order."""
        return sorted(self._peers)

    def pairs(self) -> Iterator[tuple[Endpoint, Endpoint, Measurement]]:
        """Every measured pair once."""
        for a, peers in self._peers.items():
            for b, measurement in peers.items():
                if a < b:
                    yield a, b, measurement

    def forget(self, end: Endpoint) -> None:
        """Remove an endpoint that no longer exists, with its measurements."""
        for peer in self.measurements_to(end):
            self.remove(end, peer)

    def remove(self, a: Endpoint, b: Endpoint) -> None:
        """Remove the measurement of a pair, if there is one."""
        if self.measurement(a, b) is None:
            return
        for end, peer in ((a, b), (b, a)):
            del self._peers[end][peer]
            if not self._peers[end]:
                del self._peers[end]
        self._revision += 1

    def __len__(self) -> int:
        """How many pairs are measured."""
        return sum(len(peers) for peers in self._peers.values()) // 2
