"""Pins: a fixed clock and fixed randomness, so that two executions see the same values.

The wall clock and randomness are pinned on request and recorded as the facet `pinned`; a repeat
uses the same pins. The order of processes is pinned only to find out whether it matters.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from clew.errors import UsageError


@dataclass(frozen=True)
class Pins:
    """By default nothing is pinned; `docs/reference/witness.md` explains the effect."""

    clock: int | None = None
    """The start of the wall clock, in nanoseconds since the epoch."""
    random: str | None = None
    """The seed of all randomness: 32 hex digits, not secret."""
    serial: bool = False
    """Run one process at a time."""

    @classmethod
    def chosen(cls, names: str | Iterable[str]) -> Pins:
        """New pins for these names: `clock`, `random`, or `clock,random`."""
        wanted = set(names.split(",") if isinstance(names, str) else names) - {""}
        unknown = sorted(wanted - {"clock", "random"})
        if unknown:
            raise UsageError(
                f"cannot pin {unknown[0]!r}", hint="--pin clock, random or clock,random"
            )
        return cls(
            clock=time.time_ns() if "clock" in wanted else None,
            random=os.urandom(16).hex() if "random" in wanted else None,
        )

    @classmethod
    def recorded(cls, facets: Mapping[str, Any]) -> Pins:
        """The pins that an execution was recorded with."""
        found = facets.get("pinned") or {}
        return cls(
            clock=found.get("clock"),
            random=found.get("random"),
            serial=bool(found.get("serial")),
        )

    def facet(self) -> dict[str, Any]:
        """The facet `pinned`: only what is pinned."""
        words: dict[str, Any] = {"clock": self.clock, "random": self.random}
        words["serial"] = self.serial or None
        return {name: value for name, value in words.items() if value is not None}


UNPINNED = Pins()
