"""Pipelines, their versions, schedules and experiments, as the pages of the web app show them."""

from datetime import datetime
from typing import Any

import msgspec

from clew.documents.document import Document
from clew.documents.ids import Uid
from clew.documents.pipelines.runs import RunState


class LastRun(Document, frozen=True, kw_only=True):
    """The newest run of a pipeline or schedule."""

    uid: Uid
    state: RunState
    created: datetime


class PipelineVersion(Document, frozen=True, kw_only=True):
    id: str
    name: str
    display_name: str
    description: str
    created: datetime


class Pipeline(Document, frozen=True, kw_only=True):
    id: str
    name: str
    display_name: str
    description: str
    created: datetime
    sample: str | None
    """The directory with its source, if it is a sample."""
    versions: int
    latest: PipelineVersion | None
    runs: int
    last_run: LastRun | None
    schedules: int
    archived: bool = False


class Pipelines(Document, frozen=True, kw_only=True):
    """By name. `total`: the number of all that match; at most 1,000 are listed."""

    pipelines: tuple[Pipeline, ...]
    total: int


class PipelineWithVersions(Pipeline, frozen=True, kw_only=True):
    all_versions: tuple[PipelineVersion, ...]
    """Newest first."""


class PipelineProblem(Document, frozen=True, kw_only=True):
    """Why a pipeline cannot run here, and what to do."""

    message: str
    hint: str


class PipelineSpec(Document, frozen=True, kw_only=True):
    """A compiled pipeline."""

    spec: msgspec.Raw
    """The intermediate representation of the kfp SDK."""
    platform: msgspec.Raw | None
    """The platform document, if there is one."""
    warnings: tuple[str, ...]
    """How a run here differs from one on a cluster."""
    problem: PipelineProblem | None


class RunTemplate(PipelineSpec, frozen=True, kw_only=True):
    """The pipeline and options of a run, to start another one like it."""

    name: str
    description: str
    pipeline: str | None
    """The id of the pipeline in the catalogue; null if the run does not come from there, or if the
    version was deleted."""
    version: str | None
    experiment: str | None
    parameters: dict[str, Any]
    reuse: bool
    jobs: int | None


class NamedReference(Document, frozen=True, kw_only=True):
    id: str
    name: str


class Schedule(Document, frozen=True, kw_only=True):
    """A pipeline that runs periodically: by `cron` or, every `interval` seconds."""

    id: str
    name: str
    description: str
    enabled: bool
    cron: str | None
    interval: int | None
    starts: datetime | None
    ends: datetime | None
    next: tuple[datetime, ...]
    """The next times; empty if it is disabled or has ended."""
    max_concurrency: int
    catchup: bool
    pipeline: NamedReference | None
    version: NamedReference | None
    """Null: each run uses the newest version."""
    experiment: NamedReference | None
    parameters: dict[str, Any]
    created: datetime
    runs: int
    last_run: LastRun | None


class Schedules(Document, frozen=True, kw_only=True):
    """Newest first, at most 1,000."""

    schedules: tuple[Schedule, ...]


class ScheduleTimes(Document, frozen=True, kw_only=True):
    """The times at which a schedule would run."""

    times: tuple[datetime, ...]


class Experiment(Document, frozen=True, kw_only=True):
    id: str
    name: str
    description: str
    created: datetime
    archived: bool
    runs: int
    schedules: int
    last_run: LastRun | None


class Experiments(Document, frozen=True, kw_only=True):
    """By name, at most 1,000."""

    experiments: tuple[Experiment, ...]
