"""Types for reuse checks."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

IsGiven = Callable[[bytes], bool]
"""Whether a path is an input of the task itself, which the cache key covers."""


class ReuseCheck(NamedTuple):
    """The result of a check."""

    why_not: str | None
    """The first dependency that does not hold; None if all hold."""
    checked: int = 0
    """How many dependencies were checked."""
    basis: str = ""
    """What was compared, where that may not be everything."""


class TaskVariables(NamedTuple):
    """The variables of a task, as they are recorded."""

    variables: Mapping[str, str]
    seals: Mapping[str, str]
    """Keyed hashes of the secret ones."""
