"""What to run, with which options, and what a run reports while it is performed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from clew.documents.ids import ExecutionId, TaskId, Uid

if TYPE_CHECKING:
    from clew.pipelines.engine.run_state import Node
    from clew.pipelines.spec.ir import Pipeline
    from clew.pipelines.spec.values import Values
    from clew.prov.queries.pipelines.finished_tasks import FinishedTask


@dataclass(frozen=True, kw_only=True)
class ResumedRun:
    """A run that did not succeed, and is resumed."""

    uid: Uid
    last_event: int
    finished: Mapping[str, FinishedTask]
    """By name, the tasks that do not run again."""
    seconds: float
    """How long it ran before."""


@dataclass(frozen=True, kw_only=True)
class PipelineRun:
    """A run to start, or to resume."""

    pipeline: Pipeline
    inputs: Values
    text: str
    """What the pipeline was parsed from."""
    file: Path
    """The platform file is searched beside it."""
    uid: Uid | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    """Values of placeholders."""
    resumed: ResumedRun | None = None


@dataclass(frozen=True)
class Change:
    """A task started or ended. `seconds` since it started, if it has ended."""

    node: Node
    execution: ExecutionId | None = None
    seconds: float | None = None
    why: str | None = None
    reused: TaskId | None = None
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
