"""What is pinned for a command, so that a run with the same pins is told the same.

The wall clock and randomness are pinned on request, and recorded as the facet `pinned`: a repeat
pins the same. The order of processes is pinned only to learn whether it made a difference.
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
    """Nothing is pinned unless said; `docs/reference/witness.md` says what pinning does."""

    clock: int | None = None
    """When the wall clock begins: nanoseconds since the epoch."""
    random: str | None = None
    """The seed of all randomness, 32 hex digits. It is no secret."""
    serial: bool = False
    """One process after the other."""

    @classmethod
    def chosen(cls, names: str | Iterable[str]) -> Pins:
        """New pins for what is named: `clock`, `random`; a text may name both, with a comma."""
        wanted = set(names.split(",") if isinstance(names, str) else names) - {""}
        unknown = sorted(wanted - {"clock", "random"})
        if unknown:
            raise UsageError(
                f"there is no pinning of {unknown[0]!r}", hint="--pin clock, random or clock,random"
            )
        return cls(
            clock=time.time_ns() if "clock" in wanted else None,
            random=os.urandom(16).hex() if "random" in wanted else None,
        )

    @classmethod
    def recorded(cls, facets: Mapping[str, Any]) -> Pins:
        """Those an execution was recorded with."""
        found = facets.get("pinned") or {}
        return cls(
            clock=found.get("clock"),
            random=found.get("random"),
            serial=bool(found.get("serial")),
        )

    def facet(self) -> dict[str, Any]:
        """What the record says of them: only what is pinned."""
        words: dict[str, Any] = {"clock": self.clock, "random": self.random}
        words["serial"] = self.serial or None
        return {name: value for name, value in words.items() if value is not None}


UNPINNED = Pins()
