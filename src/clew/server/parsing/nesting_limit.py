"""How deep a value from outside may be.

What reads and writes values goes down into them, and only so far: one that could be kept, and not
be read again, would fail every list that it is in.
"""

from __future__ import annotations

from typing import Any

from clew.errors import UsageError

DEEPEST = 100
_NESTED = (dict, list)


def check(value: Any, what: str) -> None:
    """Refuse a value that is nested deeper than any that has a meaning."""
    level = [value] if isinstance(value, _NESTED) else []
    for _ in range(DEEPEST):
        lists = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for several in lists for one in several if isinstance(one, _NESTED)]
        if not level:
            return
    raise UsageError(f"{what} is nested more than {DEEPEST} deep")
