"""Schedules: list and create them, and say when they would run."""

import time
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from clew.documents.document import from_nanoseconds, to_nanoseconds
from clew.documents.pipelines.catalogue import Schedule, Schedules, ScheduleTimes
from clew.errors import UsageError
from clew.server.catalogue.idempotent_requests import make_once
from clew.server.catalogue.pipelines import schedules, summaries
from clew.server.catalogue.pipelines.schedules import NewSchedule
from clew.server.parsers import cron as cron_expressions
from clew.server.run_preparation import prepare_run
from clew.server.v1.dependencies import IdempotencyKey, ProjectDep, Text
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.runs.request_bodies import Jobs

router = DocumentRouter(tags=["pipelines"])

_LAST = 2**63 - 1
"""The last time that databases can store, in nanoseconds: in the year 2262."""
_Id = Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")]
_Name = Annotated[str, StringConstraints(max_length=255, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]
_Cron = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
_Interval = Annotated[int, Field(ge=1, le=100 * 366 * 24 * 3600, description="Seconds.")]


class Trigger(BaseModel):
    """When a schedule runs: by `cron`, or every `interval` seconds."""

    model_config = ConfigDict(extra="forbid")

    cron: _Cron | None = Field(
        default=None, description="Six fields, seconds first, in UTC: `0 30 9 * * MON-FRI`."
    )
    interval: _Interval | None = None
    starts: AwareDatetime | None = None
    ends: AwareDatetime | None = None


class TimesQuery(Trigger):
    count: Annotated[int, Field(ge=1, le=20)] = 5


class ScheduleRequest(Trigger):
    """A schedule to be created. The pipeline is given as for a run; without `version`, each run
    uses the newest version of the pipeline."""

    name: _Name
    description: Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")] = ""
    spec: Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\x00]*$")] | None = None
    pipeline: _Id | None = None
    version: _Id | None = None
    experiment: _Id | None = None
    parameters: dict[str, Any] = {}
    jobs: Jobs = None
    reuse: bool = True
    enabled: bool = True
    max_concurrency: Annotated[int, Field(ge=1, le=10)] = 1
    catchup: Annotated[
        bool, Field(description="Whether missed times run later; else only the latest one does.")
    ] = True


@router.get("/schedules")
def list_schedules(
    project: ProjectDep,
    pipeline: Annotated[Text | None, Query(description="The id of a pipeline.")] = None,
) -> Schedules:
    return Schedules(schedules=tuple(summaries.list_schedules(project.graph, pipeline)))


@router.get("/schedules/{id}")
def get_schedule(
    project: ProjectDep,
    id: Annotated[Text, Path(description="The id of a schedule.")],  # noqa: A002
) -> Schedule:
    return summaries.get_schedule(project.graph, id)


@router.post("/schedules", status_code=201)
def create_schedule(
    project: ProjectDep, request: ScheduleRequest, idempotency_key: IdempotencyKey = None
) -> Schedule:
    """Create a schedule. An invalid pipeline, parameter or time is refused."""
    graph = project.graph
    times = _read_trigger(request)
    run = prepare_run(
        graph,
        spec=request.spec,
        pipeline=request.pipeline,
        version=request.version,
        experiment=request.experiment,
        name=request.name,
        description=request.description,
        parameters=request.parameters,
        jobs=request.jobs,
        reuse=request.reuse,
    )
    schedule = NewSchedule(
        experiment=run.experiment,
        name=run.name,
        description=run.description,
        pipeline=run.pipeline,
        version=request.version or None,
        config=run.config,
        spec=None if request.spec is None else run.spec,
        enabled=request.enabled,
        most=request.max_concurrency,
        catchup=request.catchup,
        **times,
    )
    key = idempotency_key and f"schedules {idempotency_key}"
    fields = request.model_dump(mode="json")
    made = make_once(graph, key, fields, lambda: schedules.insert(graph, schedule))
    return summaries.get_schedule(graph, made)


@router.get("/schedule-times")
def list_times(query: Annotated[TimesQuery, Query()]) -> ScheduleTimes:
    """The next times of a schedule that would be created now. Empty: it would never run."""
    schedule = NewSchedule(experiment="", name="", **_read_trigger(query))
    first = schedules.first_tick(schedule, time.time_ns())
    ticks = schedules.following_ticks(schedule, first, query.count)
    return ScheduleTimes(times=tuple(map(from_nanoseconds, ticks)))


def _read_trigger(trigger: Trigger) -> dict[str, Any]:
    if (trigger.cron is None) == (trigger.interval is None):
        raise UsageError("give one of cron and interval", hint="cron=0 0 9 * * *, or interval=3600")
    if trigger.cron is not None:
        cron_expressions.check(trigger.cron)
    starts, ends = (
        None if moment is None else to_nanoseconds(moment)
        for moment in (trigger.starts, trigger.ends)
    )
    if any(at is not None and not -_LAST <= at <= _LAST for at in (starts, ends)):
        raise UsageError("a time is not between the years 1678 and 2262")
    if starts is not None and ends is not None and ends <= starts:
        raise UsageError("the schedule ends before it starts", hint="choose a later end")
    return {"cron": trigger.cron, "interval": trigger.interval, "starts": starts, "ends": ends}
