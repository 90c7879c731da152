"""Executions and pipeline runs in one table, and the first page, which summarizes them."""

from datetime import datetime
from typing import Any, Literal

from clew.documents.document import Document
from clew.documents.ids import ExecutionId, TaskId, Uid
from clew.documents.workloads.workload import Quota

ActivityType = Literal["execution", "task", "run"]
ActivityState = Literal["pending", "running", "done", "succeeded", "failed", "broken", "canceled"]


class Git(Document, frozen=True, kw_only=True):
    """The state of the working directory that the command ran in."""

    commit: str | None
    dirty: bool
    branch: str | None


class Activity(Document, frozen=True, kw_only=True):
    """An execution, or a pipeline run."""

    id: str
    """`e2`, `r1`; the uid of a run that has not started."""
    uid: Uid
    type: ActivityType
    name: str | None
    state: ActivityState
    command: tuple[str, ...]
    """Empty for a run."""
    started: datetime | None
    """For a run that has not started: when it was requested."""
    ended: datetime | None
    seconds: float | None
    parameters: dict[str, Any]
    """The options of the command, or the inputs of the run: numbers, texts and booleans."""
    metrics: dict[str, float | None]
    """Null: not a finite number."""
    git: Git | None
    tags: tuple[str, ...]
    agent: str | None
    made_elsewhere: bool
    kind: str
    """`reference`, `repetition` or `modification`; of a run, `reference`."""
    experiment: str | None
    """The id of the experiment that a run belongs to."""
    experiment_name: str | None = None
    error: str | None
    """Why it failed, in one line."""
    of: ExecutionId | None
    """The execution that it repeats."""
    task: TaskId | None
    archived: bool


class ActivityPage(Document, frozen=True, kw_only=True):
    """`next`: the `after` of the next page; null on the last page. `total`: the number on all
    pages; null if the page was asked for with `after`. `parameters`, `metrics`: all names that any
    activity has."""

    activities: tuple[Activity, ...]
    next: str | None
    total: int | None
    parameters: tuple[str, ...]
    metrics: tuple[str, ...]
    unmeasured: int
    """How many ended activities have metrics that were not read yet: ask again soon."""


class MetricRange(Document, frozen=True, kw_only=True):
    """The range and the mean of the finite values of a metric."""

    min: float
    max: float
    mean: float


class ActivityGroup(Document, frozen=True, kw_only=True):
    """Activities that have something in common."""

    key: str | None
    """The value to pass as `group` to list them; null: those without such a value."""
    label: str | None
    """The value in words: the name of an experiment; null if there is none."""
    total: int
    states: dict[ActivityState, int]
    """How many are in each state."""
    newest: datetime | None
    """The start of the latest one."""
    seconds: float | None
    """How long they took on average."""
    metrics: dict[str, MetricRange]
    """The metrics that were requested."""


class ActivityGroups(Document, frozen=True, kw_only=True):
    """The groups with the newest activities first. `left_out`: how many more there are."""

    groups: tuple[ActivityGroup, ...]
    left_out: int


class MainMetric(Document, frozen=True, kw_only=True):
    name: str
    value: float | None


class Result(Activity, frozen=True, kw_only=True):
    """An activity that ended well, and its most telling metric."""

    main_metric: MainMetric | None


class StorageUse(Document, frozen=True, kw_only=True):
    """In bytes."""

    bytes: int
    """The size of the store on disk."""
    reclaimable: int | None
    """What `clew gc` would free; null if it is not known now."""
    free: int
    """Free space on the disk."""


class ActiveWorkload(Document, frozen=True, kw_only=True):
    """A notebook or TensorBoard that runs, starts, or cannot run."""

    kind: Literal["notebook", "tensorboard"]
    namespace: str
    name: str
    phase: str
    """The phase, as in the lists of notebooks: `ready`, `waiting`, `warning`, `error`, …"""
    message: str
    """The state and its reason in plain words."""
    created: str


class Counts(Document, frozen=True, kw_only=True):
    executions: int
    runs: int
    running: int
    failed: int


class Overview(Document, frozen=True, kw_only=True):
    """The content of the first page. Newest first."""

    running: tuple[Activity, ...]
    failed: tuple[Activity, ...]
    """The failures of the last 7 days; `error` says why."""
    recent: tuple[Result, ...]
    workloads: tuple[ActiveWorkload, ...]
    """The workloads that cannot run come first. Stopped ones are left out."""
    storage: StorageUse
    quota: Quota | None
    """The quota of the namespace; null if there is none."""
    counts: Counts
