"""Latencies as scoring reads them: measured where there is a measurement, else predicted.

`Estimates` is the one thing that scoring needs from prediction. It knows nothing of how a
prediction was made, and does not need numpy.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from clew.placement.latency_table import LatencyTable, location


class Estimate(NamedTuple):
    """A latency: about two thirds of all true values are within `error_ms` of `ms`."""

    ms: float
    error_ms: float
    measured: bool

    def cautious_ms(self, caution: float) -> float:
        """The latency to compare by: an uncertain one counts as a longer one."""
        return self.ms + caution * self.error_ms


class Estimates(Protocol):
    """What is known or predicted of the latencies from nodes to locations."""

    def to_location(self, name: str) -> Mapping[str, Estimate]:
        """Estimates by name of node; empty for an unknown location. The caller only reads it."""


class MeasuredEstimates:
    """Measurements alone: what scoring has before there is a prediction, or without numpy."""

    def __init__(self, table: LatencyTable, *, now: float) -> None:
        self._table = table
        self._now = now

    def to_location(self, name: str) -> Mapping[str, Estimate]:
        return {
            end.name: Estimate(measurement.ms, measurement.error_ms(self._now), True)
            for end, measurement in self._table.measurements_to(location(name)).items()
            if end.kind == "node"
        }


class ReachableEstimates:
    """Estimates without the pairs that were found unreachable: a prediction cannot know."""

    def __init__(self, known: Estimates, unreachable: Mapping[str, Collection[str]]) -> None:
        """`unreachable`: locations by name of node."""
        self._known = known
        self._unreachable = unreachable

    def to_location(self, name: str) -> Mapping[str, Estimate]:
        known = self._known.to_location(name)
        lost = {node for node, names in self._unreachable.items() if name in names}
        if not lost:
            return known
        return {node: estimate for node, estimate in known.items() if node not in lost}


class CombinedEstimates:
    """What is measured, and what is predicted of the rest."""

    def __init__(self, measured: Estimates, predicted: Estimates) -> None:
        self._measured = measured
        self._predicted = predicted

    def to_location(self, name: str) -> Mapping[str, Estimate]:
        return {**self._predicted.to_location(name), **self._measured.to_location(name)}
