"""What is asked of work that was recorded, before it is done again, and what is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

IsGiven = Callable[[bytes], bool]
"""Whether a path is what the work is given: another question."""


class ReuseCheck(NamedTuple):
    why_not: str | None
    """The first fact that does not hold; None: all do."""
    facts: int = 0
    """How many were asked."""


class TaskVariables(NamedTuple):
    """The variables that a piece of work has, as they are recorded."""

    variables: Mapping[str, str]
    seals: Mapping[str, str]
    """Of the secret ones."""
