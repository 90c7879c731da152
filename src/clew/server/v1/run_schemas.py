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
    """One that nobody has begun yet is pending, and has no `id` but its `uid`."""

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
    """The newest first. `next`: what to ask for as `after` to go on; null at the end."""

    runs: list[Run]
    next: str | None


class Tasks(Document):
    tasks: list[Task]


class RunArtifact(Document):
    """An artifact of a task: `id` names it anywhere, `version` its bytes where it is one file."""

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
    """Numbers by task: its numeric outputs, and what its metrics artifacts hold, as
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
    int | None, Field(ge=1, le=10_000, description="Tasks at once: at most the server's cores.")
]


class RunRequest(BaseModel):
    """A run to be queued: of the compiled pipeline that `spec` is, or of one that was uploaded."""

    model_config = ConfigDict(extra="forbid")

    spec: Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="A compiled pipeline: YAML, or JSON."
    )
    pipeline: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")] | None = None
    version: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")] | None = None
    name: Annotated[str, StringConstraints(max_length=255, pattern=r"^[^\x00]*$")] | None = None
    description: Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")] = ""
    experiment: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")] | None = (
        Field(default=None, description="Its id; without it, the default one.")
    )
    parameters: dict[str, Any] = {}
    jobs: Jobs = None
    reuse: bool = Field(default=True, description="What was done before need not be done again.")
    on_host: bool = Field(
        default=False,
        description="Run container components as processes. That is for the server to say: 403,"
        " unless it was started so.",
    )


class ResumeRequest(BaseModel):
    """How a run is to be gone on with."""

    model_config = ConfigDict(extra="forbid")

    jobs: Jobs = None
