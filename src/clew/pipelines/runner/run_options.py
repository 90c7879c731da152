"""The options of a run, and what it reports while it is performed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.pipelines.engine.scopes import Node


@dataclass(frozen=True)
class Change:
    """A task started or ended. `seconds` since it started, if it has ended."""

    node: Node
    execution: str | None = None
    seconds: float | None = None
    why: str | None = None
    reused: str | None = None
    """The earlier task whose results were reused."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """See `clew.api.project.Pipelines.run`."""

    jobs: int | None = None
    reuse: bool = True
    on_host: bool = False
    platform: str | None = None
    say: Callable[[str], None] = lambda _: None
    watch: Callable[[Change], None] = lambda _: None
