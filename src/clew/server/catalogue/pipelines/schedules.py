"""Schedules: pipelines that run periodically. A *tick* is a time at which a schedule is due.

`next` is the first tick that has not run; `due_schedules` advances it in the transaction that
creates the run, so that no tick is lost or run twice.
"""

import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

from clew.errors import NotFound, UsageError
from clew.pipelines.runs import pipeline_specs
from clew.pipelines.runs.run_queue import RunTemplate
from clew.prov.graph import Graph
from clew.server.parsers import cron

COLUMNS = (
    "id, created, experiment, name, description, enabled, cron, interval, starts, ends, next,"
    " most, catchup, pipeline, version, spec, service_account, updated, config"
)
_CREATE = f"""
INSERT INTO schedule ({COLUMNS}, project)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""  # noqa: S608
_GET = f"SELECT {COLUMNS} FROM schedule WHERE project = ? AND id = ?"  # noqa: S608
_ENABLE = """
UPDATE schedule SET enabled = ?, updated = ? WHERE project = ? AND id = ? RETURNING id
"""
_DELETE = "DELETE FROM schedule WHERE project = ? AND id = ? RETURNING spec"


@dataclass(frozen=True, kw_only=True)
class NewSchedule(RunTemplate):
    """A new schedule. Exactly one of `cron` and `interval` (seconds) is set."""

    cron: str | None = None
    interval: int | None = None
    starts: int | None = None
    ends: int | None = None
    enabled: bool = True
    most: int = 1
    catchup: bool = True
    spec: str | None = None
    """The text of the compiled pipeline; None: that of `version`, or of the latest version."""


@dataclass(frozen=True)
class Schedule:
    id: str
    created: int
    experiment: str
    name: str
    description: str
    enabled: bool
    cron: str | None
    interval: int | None
    starts: int | None
    ends: int | None
    next: int | None
    most: int
    catchup: bool
    pipeline: str | None
    version: str | None
    spec: str | None
    """The digest of its text in `pipeline_specs`."""
    service_account: str
    updated: int
    config: dict[str, Any]

    def after(self, tick: int) -> int | None:
        """The tick after this one; None if it was the last."""
        return next_tick(self, tick)


def next_tick(schedule: Schedule | NewSchedule, tick: int) -> int | None:
    if schedule.cron is not None:
        following = cron.next_tick(schedule.cron, after=tick)
    else:
        assert schedule.interval is not None, "exactly one of the two is set"
        following = tick + schedule.interval * cron.SECOND
    if following is None or (schedule.ends is not None and following > schedule.ends):
        return None
    return following


def create(graph: Graph, schedule: NewSchedule) -> str:
    """Store a schedule and return its id. The first tick is after `starts`, or after now."""
    return graph.connection.atomically(lambda: insert(graph, schedule))


def first_tick(schedule: NewSchedule, now: int) -> int | None:
    """The first tick of a schedule that is created now."""
    whole = now // cron.SECOND * cron.SECOND
    return next_tick(schedule, schedule.starts if schedule.starts is not None else whole)


def following_ticks(schedule: Schedule | NewSchedule, tick: int | None, count: int) -> list[int]:
    """At most `count` ticks, beginning with this one."""
    ticks: list[int] = []
    while tick is not None and len(ticks) < count:
        ticks.append(tick)
        tick = next_tick(schedule, tick)
    return ticks


def insert(graph: Graph, schedule: NewSchedule) -> str:
    """As `create`, within a transaction."""
    now = time.time_ns()
    first = first_tick(schedule, now)
    if first is None:
        raise UsageError(
            "the schedule would never run: it ends before its first tick",
            hint="give a later end_time, or another cron",
        )
    schedule_id = uuid.uuid4().hex
    spec = None if schedule.spec is None else pipeline_specs.store_spec(graph, schedule.spec)
    graph.connection.rows(
        _CREATE,
        (
            schedule_id, now, schedule.experiment, schedule.name, schedule.description,
            int(schedule.enabled), schedule.cron, schedule.interval, schedule.starts,
            schedule.ends, first, schedule.most, int(schedule.catchup), schedule.pipeline,
            schedule.version, spec, schedule.service_account, now,
            json.dumps(schedule.config), graph.project,
        ),
    )  # fmt: skip
    return schedule_id


def get(graph: Graph, schedule: str) -> Schedule:
    row = graph.connection.row(_GET, (graph.project, schedule))
    if row is None:
        raise NotFound(f"no recurring run {schedule}", hint="kfp recurring-run list")
    return from_row(row)


def from_row(row: tuple[Any, ...]) -> Schedule:
    """A row of `COLUMNS`."""
    values = list(row)
    values[5], values[12], values[18] = bool(values[5]), bool(values[12]), json.loads(values[18])
    return Schedule(*values)


def set_enabled(graph: Graph, schedule: str, *, enabled: bool) -> None:
    """If a schedule that catches up is enabled again, its missed ticks are run now."""
    row = (int(enabled), time.time_ns(), graph.project, schedule)
    if graph.connection.row(_ENABLE, row) is None:
        get(graph, schedule)


def delete(graph: Graph, schedule: str) -> None:
    """Delete a schedule; its runs stay."""

    def change() -> bool:
        row = graph.connection.row(_DELETE, (graph.project, schedule))
        if row is not None and row[0] is not None:
            pipeline_specs.delete_unused(graph, str(row[0]))
        return row is not None

    if not graph.connection.atomically(change):
        get(graph, schedule)
