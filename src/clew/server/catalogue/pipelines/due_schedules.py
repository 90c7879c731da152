"""Queues the runs of schedules that are due. A *tick* is a time at which a schedule is due.

The uid of a run is derived from its tick, and the run is created in the transaction that advances
its schedule. So no tick is lost or run twice, with any number of servers, whenever one is killed.
"""

import time
import uuid

from clew.documents.ids import Uid
from clew.errors import NotFound
from clew.pipelines.runs import pipeline_specs, run_queue
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import schedules, versions
from clew.server.catalogue.pipelines.schedules import Schedule
from clew.server.parsers.cron import SECOND

_DUE = """
SELECT id, next FROM schedule WHERE project = ? AND enabled = 1 AND next <= ? ORDER BY next LIMIT 50
"""
_NEXT_DUE = "SELECT MIN(next) FROM schedule WHERE project = ? AND enabled = 1"
_HOLD = """
UPDATE schedule SET enabled = 1 WHERE id = ? AND next = ? AND enabled = 1 RETURNING id
"""
_ACTIVE = "SELECT COUNT(*) FROM run_request WHERE schedule = ? AND state IN ('queued', 'running')"
_ADVANCE = "UPDATE schedule SET next = ? WHERE id = ?"
_FAIL = "UPDATE run_request SET state = 'failed', error = ?, finished = ? WHERE id = ?"
_PIPELINE_DELETED = "the pipeline of the schedule was deleted"


def queue_due_runs(graph: Graph, now: int) -> int:
    """Queue the runs that are due, and return how many."""
    due = graph.connection.rows(_DUE, (graph.project, now))
    return sum(_tick(graph, str(schedule), int(next_), now) for schedule, next_ in due)


def next_due(graph: Graph) -> int | None:
    """The time of the next tick of all schedules."""
    row = graph.connection.row(_NEXT_DUE, (graph.project,))
    return None if row is None or row[0] is None else int(row[0])


def choose_ticks(schedule: Schedule, *, now: int, active: int) -> tuple[list[int], int | None]:
    """The ticks to run now, besides `active` unfinished runs; and the next tick.

    A tick beyond the concurrency limit waits. A schedule that does not catch up then runs only its
    latest tick.
    """
    ticks: list[int] = []
    tick = schedule.next
    if tick is not None and tick <= now and not schedule.catchup:
        tick = _latest_tick(schedule, tick, now)
    while tick is not None and tick <= now and active + len(ticks) < schedule.most:
        ticks.append(tick)
        tick = schedule.after(tick)
    return ticks, tick


def _latest_tick(schedule: Schedule, tick: int, now: int) -> int:
    """The last tick from `tick` until now, without computing each: there may be millions."""
    until = now if schedule.ends is None else min(now, schedule.ends)
    if schedule.interval is not None:
        step = schedule.interval * SECOND
        return tick + (until - tick) // step * step
    back = SECOND
    while until - back > tick:
        candidate = schedule.after(until - back)
        if candidate is not None and candidate <= until:
            tick = candidate
            break
        back *= 2
    while (later := schedule.after(tick)) is not None and later <= until:
        tick = later
    return tick


def _tick(graph: Graph, schedule: str, expected: int, now: int) -> int:
    def advance() -> int:
        if graph.connection.row(_HOLD, (schedule, expected)) is None:
            return 0  # another server has advanced it
        current = schedules.get(graph, schedule)
        row = graph.connection.row(_ACTIVE, (schedule,))
        ticks, later = choose_ticks(current, now=now, active=int(row[0]) if row else 0)
        for tick in ticks:
            _queue_run(graph, current, tick)
        graph.connection.rows(_ADVANCE, (later, schedule))
        return len(ticks)

    return graph.connection.atomically(advance)


def _queue_run(graph: Graph, schedule: Schedule, at: int) -> None:
    version, spec = _find_version(graph, schedule)
    due = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // SECOND))
    run = run_queue.insert_run(
        graph,
        run_queue.NewRun(
            id=Uid(uuid.uuid5(uuid.UUID(schedule.id), str(at)).hex),
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
        graph.connection.rows(_FAIL, (_PIPELINE_DELETED, time.time_ns(), run))


def _find_version(graph: Graph, schedule: Schedule) -> tuple[str | None, str | None]:
    """The version to run and the digest of its spec; None if it was deleted."""
    if schedule.spec is not None:
        return schedule.version, schedule.spec
    try:
        found = versions.resolve(graph, schedule.pipeline or "", schedule.version or "")
    except NotFound:
        return None, None
    return found.id, found.spec
