"""Latencies and costs that administrators write on nodes.

A label whose name is a location and whose value is a number of milliseconds says how far that
location is: `HOME: 0.289` or `HOME: 0.8ms`. It takes the place of measurements, does not age, and
holds until it is changed or removed.
"""

import math
import re
from collections.abc import Mapping

from clew.placement.latency_table import (
    LONGEST_MS,
    SHORTEST_MS,
    LatencyTable,
    Measurement,
    location,
    node,
)
from clew.placement.request import parse_milliseconds

COST = "latency.clew.dev/cost"
"""A label or annotation of a node: its cost, in any unit, such as money per hour or watts."""

_ENTERED_AT = 253_402_300_799.0
"""The end of the year 9999: later than any measurement, so that none replaces it."""
_COST = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")


def parse_latencies(labels: Mapping[str, str]) -> dict[str, float]:
    """Latencies by location. Labels with a prefix are never locations."""
    found = {}
    for name, text in labels.items():
        if "/" in name or (ms := parse_milliseconds(text)) is None or ms > LONGEST_MS:
            continue
        found[name] = max(ms, SHORTEST_MS)
    return found


def record_latencies(table: LatencyTable, name: str, labels: Mapping[str, str]) -> None:
    """Put the labels of a node into the table, and remove those that it no longer has."""
    entered = parse_latencies(labels)
    own = node(name)
    for end, measurement in table.measurements_to(own).items():
        if is_entered(measurement) and end.name not in entered:
            table.remove(own, end)
    for place, ms in entered.items():
        table.record(own, location(place), ms, at=_ENTERED_AT)


def is_entered(measurement: Measurement) -> bool:
    """Whether it is from a label: nobody measured it."""
    return measurement.at == _ENTERED_AT


def parse_cost(labels: Mapping[str, str], annotations: Mapping[str, str]) -> float:
    """The cost of a node; 0 if none is written."""
    text = annotations.get(COST) or labels.get(COST) or ""
    cost = float(text) if _COST.fullmatch(text) else 0.0
    return cost if math.isfinite(cost) else 0.0
