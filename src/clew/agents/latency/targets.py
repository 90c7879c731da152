"""What one node probes, and when: each target once per interval, at a random time of its own.

One probe after another, with pauses, so neither the node nor a location sees a burst.
"""

import random
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from clew.placement.latency_table import Endpoint
from clew.placement.measurement.locations import ProbeAddress
from clew.placement.measurement.round_result import RoundResult
from clew.placement.measurement.target_record import TargetRecord

KEPT_SECONDS = 3600
"""How long the latency of a target is kept after it was last asked for."""
_JITTER = 0.2
_REPEAT_SECONDS = 1.0
_MOST_TARGETS = 64


class Due(NamedTuple):
    end: Endpoint
    address: ProbeAddress
    due: float


class _Target:
    def __init__(self, address: ProbeAddress, due: float) -> None:
        self.address = address
        self.due = due
        self.record = TargetRecord()


class Targets:
    """`now` is a time of the monotonic clock, `at` in seconds since the epoch."""

    def __init__(self, interval: float, draw: random.Random) -> None:
        self._interval = interval
        self._draw = draw
        self._targets: dict[Endpoint, _Target] = {}
        self._former: dict[Endpoint, TargetRecord] = {}

    def set(self, wanted: Mapping[Endpoint, ProbeAddress], *, now: float, at: float) -> bool:
        """Replace the targets; returns whether a known latency was dropped."""
        wanted = dict(sorted(wanted.items())[:_MOST_TARGETS])
        lost = False
        for end, target in list(self._targets.items()):
            if wanted.get(end) != target.address:
                del self._targets[end]
                if end not in wanted:
                    self._former[end] = target.record
                else:
                    lost = True
        for end, address in wanted.items():
            if end not in self._targets:
                # The first rounds are soon, and not all at once.
                first = now + self._draw.uniform(0, min(self._interval, 0.1 * len(wanted)))
                made = self._targets[end] = _Target(address, first)
                if end in self._former:
                    made.record = self._former.pop(end)
        for end, record in list(self._former.items()):
            if record.latest is None or record.at < at - KEPT_SECONDS:
                del self._former[end]
                lost = True
        return lost

    def next_due(self) -> Due | None:
        found = min(self._targets.items(), key=lambda item: item[1].due, default=None)
        return None if found is None else Due(found[0], found[1].address, found[1].due)

    def take(self, end: Endpoint, result: RoundResult | None, *, now: float, at: float) -> bool:
        """Take the result of a round; whether others should know of a change."""
        target = self._targets[end]
        taken = target.record.take(result, at=at)
        pause = _REPEAT_SECONDS if taken.repeat else self._interval
        target.due = now + pause * self._draw.uniform(1 - _JITTER, 1 + _JITTER)
        return taken.changed

    def all_tried(self) -> bool:
        return all(target.record.rounds for target in self._targets.values())

    def records(self) -> Iterable[tuple[Endpoint, TargetRecord]]:
        for end, target in self._targets.items():
            yield end, target.record
        yield from self._former.items()
