"""The documents of pipeline runs: those of `clew pipeline --json`, with their types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from clew.server.v1.schemas import Document, Json

TaskState = Literal["pending", "running", "succeeded", "failed", "skipped", "reused", "canceled"]
RunState = Literal["pending", "running", "succeeded", "failed", "canceled"]


class Artifact(Document):
    uri: str
    type: str
    digest: str | None = None
    size: int | None = None
    metadata: Json = {}


class Task(Document):
    id: str
    name: str
    state: TaskState
    started: str | None
    ended: str | None
    seconds: float | None
    parameters: Json
    outputs: Json
    artifacts: dict[str, list[Artifact]]
    reused_from: str | None
    why: str | None
    error: str | None
    execution: str | None
    attempts: list[str]


class Run(Document):
    """A run that has not started is pending, and has only a `uid`, no `id`."""

    id: str | None
    uid: str
    name: str | None
    state: RunState
    started: str | None
    ended: str | None
    seconds: float | None
    inputs: Json
    outputs: Json
    error: str | None
    created: str | None
    experiment: str | None


class RunWithTasks(Run):
    tasks: list[Task]


class Runs(Document):
    """Newest first. `next`: the `after` of the next page; null on the last page."""

    runs: list[Run]
    next: str | None


class Tasks(Document):
    tasks: list[Task]


class RunArtifact(Document):
    """An artifact of a task. `version` names its content if it is a single file."""

    id: str
    task: str
    name: str
    uri: str
    type: str
    digest: str | None
    size: int | None
    metadata: Json
    version: str | None


class Artifacts(Document):
    artifacts: list[RunArtifact]


class TaskMetrics(Document):
    task: str
    state: TaskState
    values: dict[str, float]


class Metrics(Document):
    """Numbers by task: its numeric outputs, and the values of its metrics artifacts, as
    `ARTIFACT.NAME`."""

    run: str
    metrics: list[TaskMetrics]


class Why(Document):
    id: str
    state: TaskState
    why: str | None
    reused_from: str | None
    execution: str | None
    key: str | None
    parts: Json
    facts: Any


Jobs = Annotated[
    int | None,
    Field(
        ge=1, le=10_000, description="Concurrent tasks; at most the number of the server's cores."
    ),
]


class RunRequest(BaseModel):
    """A run to be queued: of the pipeline in `spec`, or of an uploaded pipeline version."""

    model_config = ConfigDict(extra="forbid")

    spec: Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="A compiled pipeline, as YAML or JSON."
    )
    pipeline: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")] | None = None
    version: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")] | None = None
    name: Annotated[str, StringConstraints(max_length=255, pattern=r"^[^\x00]*$")] | None = None
    description: Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")] = ""
    experiment: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")] | None = (
        Field(
            default=None, description="The id of the experiment; the default experiment if missing."
        )
    )
    parameters: dict[str, Any] = {}
    jobs: Jobs = None
    reuse: bool = Field(default=True, description="Reuse the results of earlier tasks.")
    on_host: bool = Field(
        default=False,
        description="Run container components as processes. 403 unless the server was started with"
        " --on-host.",
    )


class ResumeRequest(BaseModel):
    """Options of resuming a run."""

    model_config = ConfigDict(extra="forbid")

    jobs: Jobs = None
