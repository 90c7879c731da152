"""Schedules: pipelines that are run by themselves, tick after tick.

A row's `next` is the tick that is not run yet; it moves on in the transaction that creates the
tick's run, so none is lost and none is run twice, whoever ticks.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from clew.errors import NotFound, UsageError
from clew.prov.graph import Graph
from clew.server.catalogue import pipeline_specs
from clew.server.parsing import cron

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
class NewSchedule:
    """What a new schedule shall be: by `cron` or by `interval` (seconds), one of them."""

    experiment: str
    name: str
    cron: str | None = None
    interval: int | None = None
    starts: int | None = None
    ends: int | None = None
    enabled: bool = True
    most: int = 1
    catchup: bool = True
    description: str = ""
    pipeline: str | None = None
    version: str | None = None
    spec: str | None = None
    """The text of the compiled pipeline; None: the version's, the newest where that is None."""
    service_account: str = ""
    config: dict[str, Any] = field(default_factory=dict)


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
    """By what `specs` finds its text."""
    service_account: str
    updated: int
    config: dict[str, Any]

    def after(self, tick: int) -> int | None:
        """The tick that follows one; None: that was the last."""
        return next_tick(self, tick)


def next_tick(schedule: Schedule | NewSchedule, tick: int) -> int | None:
    if schedule.cron is not None:
        found = cron.next_tick(schedule.cron, after=tick)
    else:
        assert schedule.interval is not None, "one of the two is given"
        found = tick + schedule.interval * cron.SECOND
    if found is None or (schedule.ends is not None and found > schedule.ends):
        return None
    return found


def create(graph: Graph, asked: NewSchedule) -> str:
    """Keep a schedule, and answer with its uid; the first tick is one after its start, or now."""
    now = time.time_ns()
    first = next_tick(
        asked, asked.starts if asked.starts is not None else now // cron.SECOND * cron.SECOND
    )
    if first is None:
        raise UsageError(
            "the schedule would never run: no tick comes before its end",
            hint="give a later end_time, or another cron",
        )
    made = uuid.uuid4().hex

    def insert() -> str:
        spec = None if asked.spec is None else pipeline_specs.store_spec(graph, asked.spec)
        graph.connection.rows(
            _CREATE,
            (
                made, now, asked.experiment, asked.name, asked.description, int(asked.enabled),
                asked.cron, asked.interval, asked.starts, asked.ends, first, asked.most,
                int(asked.catchup), asked.pipeline, asked.version, spec, asked.service_account,
                now, json.dumps(asked.config), graph.project,
            ),
        )  # fmt: skip
        return made

    return graph.connection.atomically(insert)


def get(graph: Graph, schedule: str) -> Schedule:
    row = graph.connection.one(_GET, (graph.project, schedule))
    if row is None:
        raise NotFound(f"no recurring run {schedule}", hint="kfp recurring-run list")
    return from_row(row)


def from_row(row: tuple[Any, ...]) -> Schedule:
    """A row of `COLUMNS`."""
    words = list(row)
    words[5], words[12], words[18] = bool(words[5]), bool(words[12]), json.loads(words[18])
    return Schedule(*words)


def enable(graph: Graph, schedule: str) -> None:
    """It runs again; the ticks it missed are made up for, where it catches up."""
    _switch(graph, schedule, 1)


def disable(graph: Graph, schedule: str) -> None:
    _switch(graph, schedule, 0)


def delete(graph: Graph, schedule: str) -> None:
    """Its runs stay."""

    def change() -> bool:
        row = graph.connection.one(_DELETE, (graph.project, schedule))
        if row is not None and row[0] is not None:
            pipeline_specs.delete_unused(graph, str(row[0]))
        return row is not None

    if not graph.connection.atomically(change):
        get(graph, schedule)


def _switch(graph: Graph, schedule: str, enabled: int) -> None:
    now = time.time_ns()
    if graph.connection.one(_ENABLE, (enabled, now, graph.project, schedule)) is None:
        get(graph, schedule)
