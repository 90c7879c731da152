"""Types and defaults of parameters that `Project` and `Pipelines` share."""

from collections.abc import Callable
from os import PathLike

StrPath = str | PathLike[str]
Say = Callable[[str], None]
"""Receives sentences for a person."""
Progress = Callable[[int, int], None]
"""Receives the bytes transferred so far, and the total."""


def ignore_message(_: str) -> None:
    """The default `say`."""


def ignore_progress(_done: int, _total: int) -> None:
    """The default `progress`."""
