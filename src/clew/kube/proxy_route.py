"""The way to a server for our own proxy, told on its Service: one look there is enough.

The operator writes it and the proxy reads it. So the proxy need know nothing of a cluster but
Services, and not what they were made of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from clew.kube.objects import Object, annotations_of, dig

WAY = "clew.dev/way"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


@dataclass(frozen=True)
class Way:
    """What of a request is changed for a server."""

    rewrite: str | None = None
    """What it is asked for in place of its prefix; None: the address stays as it is."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Set on every request."""
    timeout: float | None = None
    """Seconds until its answer must begin; None: as many as the proxy waits anyway."""
    base: str | None = None
    """What its addresses begin with, before its namespace; None: as those of its kind do."""
    access: bool = False
    """Whether its Pod knows the digest of an access token, which is then sent on each request."""


def noted(way: Way) -> dict[str, str]:
    """As an annotation, which is there also where nothing is changed: else a change that was taken
    back would stay."""
    said = {**vars(way), "headers": dict(way.headers)}
    kept = {name: value for name, value in said.items() if value}
    return {WAY: json.dumps(kept, sort_keys=True)}


def told(service: Object) -> Way:
    """What a Service says of the way to it; nothing where somebody spoilt it."""
    try:
        said = json.loads(annotations_of(service).get(WAY, "{}"))
    except ValueError:
        return Way()
    rewrite, headers, timeout, base, access = (dig(said, each.name) for each in fields(Way))
    return Way(
        rewrite=rewrite if isinstance(rewrite, str) else None,
        headers=headers if isinstance(headers, Mapping) else {},
        timeout=float(timeout) if isinstance(timeout, int | float) and timeout > 0 else None,
        base=base if isinstance(base, str) else None,
        access=access is True,
    )


def seconds(text: str) -> float | None:
    """A time as Istio writes it: 30s, 1m30s; None for what is none."""
    found = _TIME.findall(text)
    if not found or "".join(number + unit for number, unit in found) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in found) or None
