"""The input, options and progress reports of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.documents.ids import ExecutionId, RunId, TaskId, Uid
from clew.pipelines.run_directory import RUNS

if TYPE_CHECKING:
    from clew.pipelines.engine.run_state import Node
    from clew.pipelines.spec.ir import Pipeline
    from clew.pipelines.spec.values import Values
    from clew.project_directory import ProjectDirectory
    from clew.prov.queries.pipelines.finished_tasks import FinishedTask
    from clew.settings import Settings


@dataclass(frozen=True, kw_only=True)
class ResumedRun:
    """A run that did not succeed, and is resumed."""

    uid: Uid
    last_event: int
    finished: Mapping[str, FinishedTask]
    """By name, the tasks that do not run again."""
    seconds: float
    """How long it ran before."""
    attempts: Mapping[str, int]
    """By name, how many attempts of a task are recorded."""


@dataclass(frozen=True, kw_only=True)
class PipelineRun:
    """A run to start, or to resume."""

    pipeline: Pipeline
    inputs: Values
    text: str
    """The text that the pipeline was parsed from."""
    file: Path
    """The platform file is searched beside it."""
    uid: Uid | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    """Values of placeholders."""
    resumed: ResumedRun | None = None


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """A run that is performed now."""

    directory: ProjectDirectory
    settings: Settings
    id: RunId
    uid: Uid

    @property
    def run_directory(self) -> Path:
        """With the text of the pipeline, and the files of tasks that run on this machine."""
        return self.directory.root / RUNS / self.id


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
class ClusterOptions:
    """Where tasks run as Pods, and where they leave their artifacts."""

    namespace: str
    artifacts: str
    """The URL of a bucket, perhaps with a prefix: s3://bucket/prefix."""
    image: str
    """The image of Clew, which moves the data of tasks."""
    scheduler: str = ""
    """The scheduler of tasks that are to run near their clients; by default, that of all Pods."""
    trace: bool = True
    """Whether the processes in the Pods are recorded."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """See `clew.api.project.Pipelines.run`."""

    jobs: int | None = None
    reuse: bool = True
    on_host: bool = False
    platform: str | None = None
    cluster: ClusterOptions | None = None
    """Where on a cluster its tasks run; None: on this machine."""
    say: Callable[[str], None] = lambda _: None
    watch: Callable[[Change], None] = lambda _: None

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that a resumed run has, too."""
        kept = {"reuse": self.reuse, "on_host": self.on_host, "platform": self.platform}
        return kept | ({"cluster": asdict(self.cluster)} if self.cluster else {})


def read_options(recorded: Mapping[str, Any]) -> RunOptions:
    """The options of a recorded run."""
    cluster = recorded.get("cluster")
    options = {**recorded, "cluster": ClusterOptions(**cluster) if cluster else None}
    return RunOptions(**options)
