"""What a Pod asks of its placement, read from its labels and annotations.

A Pod takes part if its label `typeOfComponent` says that it answers predictions and it names where
its clients are. All other Pods are ignored. Labels and annotations are untrusted: a value that
cannot be parsed is reported as a problem and then ignored.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

KIND_LABEL = "typeOfComponent"
KINDS = ("Predict", "Predicting", "Serving")
LOCATION_LABEL = "OurLocation"

LOCATIONS = "latency.clew.dev/locations"
"""Several locations with their shares of the requests: `A=0.7,B=0.3`. It replaces the label."""
MAX_MS = "latency.clew.dev/max-ms"
"""No client location may be farther from the Pod's node."""
SPREAD_MS = "latency.clew.dev/spread-ms"
"""A node with a replica of the Pod counts as so much farther, for each of them."""
COST_MS = "latency.clew.dev/cost-ms"
"""A node counts as so much farther for each unit of its cost."""

_MOST_LOCATIONS = 16
_LONGEST_TEXT = 2_000
_LOCATION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_MILLISECONDS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:ms)?")


@dataclass(frozen=True)
class Request:
    """`shares`: client locations with their shares of the requests, which sum up to 1. None if they
    cannot be read."""

    shares: tuple[tuple[str, float], ...]
    max_ms: float | None = None
    spread_ms: float = 0.0
    cost_ms: float = 0.0
    problems: tuple[str, ...] = ()


def parse_milliseconds(text: str) -> float | None:
    """A number of milliseconds, with or without its unit: `0.8ms`, `12`."""
    found = _MILLISECONDS.fullmatch(text.strip())
    return float(found[1]) if found else None


def parse_request(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Request | None:
    """What a Pod asks; None if it asks nothing."""
    if labels.get(KIND_LABEL) not in KINDS:
        return None
    problems: list[str] = []
    shares = _parse_locations(annotations, problems)
    if not shares and (location := labels.get(LOCATION_LABEL)):
        shares = ((location, 1.0),)
    if not shares and not problems:
        return None

    def milliseconds(name: str) -> float | None:
        text = annotations.get(name)
        if text is None:
            return None
        if (found := parse_milliseconds(text)) is None:
            problems.append(f"{name}: {text[:40]!r} is not a number of milliseconds")
        return found

    return Request(
        shares,
        max_ms=milliseconds(MAX_MS),
        spread_ms=milliseconds(SPREAD_MS) or 0.0,
        cost_ms=milliseconds(COST_MS) or 0.0,
        problems=tuple(problems),
    )


def _parse_locations(
    annotations: Mapping[str, str], problems: list[str]
) -> tuple[tuple[str, float], ...]:
    """The locations with their shares, scaled to a sum of 1; empty if there are none."""
    text = annotations.get(LOCATIONS)
    if text is None:
        return ()
    parts = text[:_LONGEST_TEXT].split(",")
    shares: dict[str, float] = {}
    for part in parts:
        name, _, number = part.partition("=")
        share = _parse_share(number) if number else 1.0
        if not _LOCATION.fullmatch(name.strip()) or share is None:
            problems.append(f"{LOCATIONS}: {part[:40]!r} is not LOCATION=SHARE")
            return ()
        shares[name.strip()] = shares.get(name.strip(), 0.0) + share
    if len(shares) > _MOST_LOCATIONS or len(text) > _LONGEST_TEXT:
        problems.append(f"{LOCATIONS}: there are more than {_MOST_LOCATIONS} locations")
        return ()
    total = sum(shares.values())
    return tuple((name, share / total) for name, share in sorted(shares.items()))


def _parse_share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if math.isfinite(share) and 1e-6 <= share <= 1e6 else None
