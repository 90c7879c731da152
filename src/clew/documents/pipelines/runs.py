"""Pipeline runs and their tasks."""

from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from clew.documents.document import Document
from clew.documents.ids import Digest, ExecutionId, RunId, TaskId, Uid, VersionId

TaskState = Literal["pending", "running", "succeeded", "failed", "skipped", "reused", "canceled"]
RunState = Literal["pending", "running", "succeeded", "failed", "canceled"]


class Artifact(Document, frozen=True, kw_only=True):
    """An output artifact of a task. `digest`, `size` and `version` are null if it is not a single
    file."""

    uri: str
    type: str
    digest: Digest | None = None
    size: int | None = None
    metadata: dict[str, Any] = {}
    version: VersionId | None = None
    custom_path: str | UnsetType = UNSET
    """The path that the component wrote it to, if not its URI."""


class Task(Document, frozen=True, kw_only=True):
    id: TaskId
    name: str
    """With the groups that contain it: `for-loop-1/0/train`."""
    state: TaskState
    started: datetime | None
    ended: datetime | None
    seconds: float | None
    parameters: dict[str, Any]
    platform: dict[str, Any]
    """Settings that only a cluster applies."""
    outputs: dict[str, Any]
    artifacts: dict[str, tuple[Artifact, ...]]
    reused_from: TaskId | None
    why: str | None
    error: str | None
    execution: ExecutionId | None
    """The last one."""
    attempts: tuple[ExecutionId, ...]
    key: str | None
    parts: dict[str, Any]
    """The values that the key is a hash of."""
    pod: str | None = None
    """The name of the last Pod that ran it; null on one machine."""
    node: str | None = None
    image_digest: str | None = None
    placement: str | None = None
    """Why it ran on its node, if the latency-aware scheduler chose that."""


class Run(Document, frozen=True, kw_only=True):
    """A run without its tasks. One that has not started is pending, and has no `id`."""

    id: RunId | None
    uid: Uid
    name: str | None
    state: RunState
    started: datetime | None
    ended: datetime | None
    seconds: float | None
    file: str | None
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    error: str | None
    created: datetime | None = None
    """The time of the request to the server."""
    experiment: str | None = None


class RunWithTasks(Run, frozen=True, kw_only=True):
    tasks: tuple[Task, ...]
    tags: tuple[str, ...] = ()


class RunWithCounts(Run, frozen=True, kw_only=True):
    counts: dict[str, int]
    """The number of tasks in each state."""


class Runs(Document, frozen=True, kw_only=True):
    """Newest first. `next`: the `after` of the next page; null on the last page."""

    runs: tuple[Run, ...]
    next: str | None


class Tasks(Document, frozen=True, kw_only=True):
    tasks: tuple[Task, ...]


class RunArtifact(Document, frozen=True, kw_only=True):
    """An artifact of a task. `version` names its content if it is a single file."""

    id: str
    task: TaskId
    name: str
    uri: str
    type: str
    digest: Digest | None
    size: int | None
    metadata: dict[str, Any]
    version: VersionId | None


class Artifacts(Document, frozen=True, kw_only=True):
    artifacts: tuple[RunArtifact, ...]


class TaskMetrics(Document, frozen=True, kw_only=True):
    task: TaskId
    state: TaskState
    values: dict[str, float]


class Metrics(Document, frozen=True, kw_only=True):
    """Numbers by task: its numeric outputs, and the values of its metrics artifacts, as
    `ARTIFACT.NAME`."""

    run: str
    metrics: tuple[TaskMetrics, ...]


class Fact(Document, frozen=True, kw_only=True):
    """Something that a task depended on, beside its declared inputs."""

    kind: str
    path: str
    answer: str


class Why(Document, frozen=True, kw_only=True):
    """Why a task ran or was reused."""

    id: TaskId
    state: TaskState
    why: str | None
    reused_from: TaskId | None
    execution: ExecutionId | None
    key: str | None
    parts: dict[str, Any]
    """The values that the key is a hash of."""
    facts: tuple[Fact, ...]
    pod: str | None = None
    node: str | None = None
    image_digest: str | None = None
    placement: str | None = None
    """Why it ran on its node, if the latency-aware scheduler chose that."""


class LogPart(Document, frozen=True, kw_only=True):
    """A part of the output of a task."""

    data: bytes
    """In Base64 in JSON."""
    complete: bool
    """Nothing follows."""
    attempt: str
    """Each attempt has an output of its own; empty before the first."""


class RunChange(Document, frozen=True, kw_only=True):
    """A change of a run or of one of its tasks."""

    n: int
    at: datetime
    run: RunId
    kind: str
    task: TaskId | None
    name: str | None
    change: Literal["started", "ended"]
    state: str
    reused_from: TaskId | None
    why: str | None
    error: str | None
