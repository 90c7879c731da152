"""Which ticks of schedules are due, and the runs they ask for.

A tick's run has a uid that is made from the tick, and is created in the transaction that moves its
schedule on: so none is lost and none is run twice, however many servers tick, and whenever one is
killed.
"""

from __future__ import annotations

import time
import uuid

from clew.prov.graph import Graph
from clew.server.catalogue import pipeline_specs, runs, schedules
from clew.server.catalogue.schedules import Schedule
from clew.server.parsing.cron import SECOND

_DUE = """
SELECT id, next FROM schedule WHERE project = ? AND enabled = 1 AND next <= ? ORDER BY next LIMIT 50
"""
_SOONEST = "SELECT MIN(next) FROM schedule WHERE project = ? AND enabled = 1"
_HOLD = """
UPDATE schedule SET enabled = 1 WHERE id = ? AND next = ? AND enabled = 1 RETURNING id
"""
_ACTIVE = "SELECT COUNT(*) FROM run WHERE schedule = ? AND state IN ('queued', 'running')"
_MOVE_ON = "UPDATE schedule SET next = ? WHERE id = ?"
_OF_VERSION = "SELECT id, spec FROM pipeline_version WHERE id = ?"
_NEWEST = """
SELECT id, spec FROM pipeline_version WHERE pipeline = ? ORDER BY created DESC, id DESC LIMIT 1
"""
_FAIL = "UPDATE run SET state = 'failed', error = ?, finished = ? WHERE id = ?"
_GONE = "the pipeline that it was to run is deleted"


def queue_due_runs(graph: Graph, now: int) -> int:
    """Ask for the runs that are due; the answer is how many these are."""
    due = graph.connection.rows(_DUE, (graph.project, now))
    return sum(_tick(graph, str(schedule), int(next_), now) for schedule, next_ in due)


def next_due(graph: Graph) -> int | None:
    """When the next tick of all is due."""
    row = graph.connection.one(_SOONEST, (graph.project,))
    return None if row is None or row[0] is None else int(row[0])


def choose_ticks(schedule: Schedule, *, now: int, active: int) -> tuple[list[int], int | None]:
    """Which ticks are run now, beside `active` runs that still go on; and the one that is next.

    A tick for which there is no room waits; one that does not catch up then runs the latest alone.
    """
    ticks: list[int] = []
    tick = schedule.next
    if tick is not None and tick <= now and not schedule.catchup:
        tick = _latest(schedule, tick, now)
    while tick is not None and tick <= now and active + len(ticks) < schedule.most:
        ticks.append(tick)
        tick = schedule.after(tick)
    return ticks, tick


def _latest(schedule: Schedule, tick: int, now: int) -> int:
    """The last tick from `tick` until now: there may have been millions."""
    until = now if schedule.ends is None else min(now, schedule.ends)
    if schedule.interval is not None:
        step = schedule.interval * SECOND
        return tick + (until - tick) // step * step
    back = SECOND
    while until - back > tick:
        found = schedule.after(until - back)
        if found is not None and found <= until:
            tick = found
            break
        back *= 2
    while (later := schedule.after(tick)) is not None and later <= until:
        tick = later
    return tick


def _tick(graph: Graph, schedule: str, expected: int, now: int) -> int:
    def move_on() -> int:
        if graph.connection.one(_HOLD, (schedule, expected)) is None:
            return 0  # somebody else has
        found = schedules.get(graph, schedule)
        row = graph.connection.one(_ACTIVE, (schedule,))
        ticks, later = choose_ticks(found, now=now, active=int(row[0]) if row else 0)
        for one in ticks:
            _ask(graph, found, one)
        graph.connection.rows(_MOVE_ON, (later, schedule))
        return len(ticks)

    return graph.connection.atomically(move_on)


def _ask(graph: Graph, schedule: Schedule, at: int) -> None:
    version, spec = _what(graph, schedule)
    due = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // SECOND))
    made = runs.insert(
        graph,
        runs.NewRun(
            id=uuid.uuid5(uuid.UUID(schedule.id), str(at)).hex,
            experiment=schedule.experiment,
            name=f"{schedule.name} {due}",
            description=schedule.description,
            spec="" if spec is None else pipeline_specs.text_of(graph, spec),
            config=schedule.config,
            pipeline=schedule.pipeline,
            version=version,
            service_account=schedule.service_account,
            schedule=schedule.id,
            scheduled=at,
        ),
    )
    if spec is None:
        graph.connection.rows(_FAIL, (_GONE, time.time_ns(), made))


def _what(graph: Graph, schedule: Schedule) -> tuple[str | None, str | None]:
    """The version that is run, and its spec; none where it was deleted."""
    if schedule.spec is not None:
        return schedule.version, schedule.spec
    if schedule.version is not None:
        row = graph.connection.one(_OF_VERSION, (schedule.version,))
    else:
        row = graph.connection.one(_NEWEST, (schedule.pipeline,))
    return (None, None) if row is None else (str(row[0]), str(row[1]))
