"""Runs that were asked for: who asked, for what, and who runs each.

A run is queued, then held by one runner at a time. The holder keeps its lease up; once that is
over (see `leases`), another runner claims the run and goes on with it. So no run is lost with its
runner, and none is run twice at a time.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from clew.errors import Busy, NotFound, UsageError
from clew.prov.graph import Graph
from clew.server.catalogue import pipeline_specs
from clew.server.catalogue.leases import LeaseWatcher

FINAL_STATES = ("succeeded", "failed", "canceled")
MAX_TRIES = 3
"""How often a run is taken up before it is given up: it may be what ends its runners."""

COLUMNS = (
    "id, created, state, archived, experiment, schedule, name, description, pipeline, version,"
    " spec, scheduled, began, finished, stop, tries, service_account, error, config"
)
_CREATE = """
INSERT INTO run (id, project, created, state, archived, experiment, schedule, name, description,
    pipeline, version, spec, scheduled, stop, lease, tries, service_account, config)
VALUES (?, ?, ?, 'queued', 0, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?, ?) ON CONFLICT DO NOTHING
"""
_NEWEST = """
UPDATE experiment SET last_run = ? WHERE id = ? AND (last_run IS NULL OR last_run < ?)
"""
_GET = f"SELECT {COLUMNS} FROM run WHERE project = ? AND id = ?"  # noqa: S608
_HELD = """
SELECT id, lease, holder FROM run WHERE project = ? AND state = 'running' ORDER BY created, id
"""
_QUEUED = """
SELECT id FROM run WHERE project = ? AND state = 'queued' ORDER BY created, id LIMIT 1
"""
_CLAIM = """
UPDATE run SET state = 'running', holder = ?, lease = ?, tries = tries + 1
WHERE id = ? AND (state = 'queued' OR (state = 'running' AND lease < ?)) RETURNING tries
"""
_HOLD = "UPDATE run SET lease = ? WHERE id = ? AND holder = ? AND state = 'running' RETURNING stop"
_BEGAN = "UPDATE run SET began = COALESCE(began, ?) WHERE id = ? AND holder = ?"
_ENDED = """
UPDATE run SET state = ?, error = ?, finished = ?, holder = NULL, lease = 0
WHERE id = ? AND holder = ? AND state = 'running' RETURNING id
"""
_PUT_AWAY = """
UPDATE run SET state = 'queued', finished = ?, holder = NULL, lease = 0, tries = tries - 1
WHERE id = ? AND holder = ? AND state = 'running'
"""
_LET_GO = """
UPDATE run SET lease = 0, tries = tries - ? WHERE holder = ? AND state = 'running'
"""
_STOP_QUEUED = """
UPDATE run SET state = 'canceled', finished = ?, error = ?, stop = 1
WHERE project = ? AND id = ? AND state = 'queued' RETURNING id
"""
_STOP = "UPDATE run SET stop = 1 WHERE project = ? AND id = ? AND state = 'running'"
_AGAIN = """
UPDATE run SET state = 'queued', stop = 0, error = NULL, tries = 0, config = ?
WHERE project = ? AND id = ? AND state IN ('failed', 'canceled') RETURNING id
"""
_ARCHIVE = "UPDATE run SET archived = ? WHERE project = ? AND id = ? RETURNING id"
_DELETE = "DELETE FROM run WHERE project = ? AND id = ? AND state <> 'running' RETURNING spec"

TERMINATED = "terminated: somebody asked for its end"


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """What a new run shall be. `config`: {parameters: {…}, pipeline_root: …, options: {…}}; of
    these, the options are how it is run here: jobs, reuse."""

    experiment: str
    name: str
    spec: str
    """The text of the compiled pipeline: one or two YAML documents, or JSON."""
    config: dict[str, Any] = field(default_factory=dict)
    description: str = ""
    pipeline: str | None = None
    version: str | None = None
    service_account: str = ""
    schedule: str | None = None
    scheduled: int | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class Run:
    id: str
    created: int
    state: str
    archived: bool
    experiment: str
    schedule: str | None
    name: str
    description: str
    pipeline: str | None
    version: str | None
    spec: str
    """By what `specs` finds its text."""
    scheduled: int | None
    began: int | None
    finished: int | None
    """When it ended; of one that is to be gone on with, when it ended before."""
    stop: bool
    tries: int
    service_account: str
    error: str | None
    config: dict[str, Any]


def create(graph: Graph, asked: NewRun) -> str:
    """Queue a run, and answer with its uid. Asked again with the same one, nothing changes."""
    return graph.connection.atomically(lambda: insert(graph, asked))


def insert(graph: Graph, asked: NewRun) -> str:
    """As `create`, within a transaction."""
    now = time.time_ns()
    spec = pipeline_specs.store_spec(graph, asked.spec)
    graph.connection.rows(
        _CREATE,
        (
            asked.id, graph.project, now, asked.experiment, asked.schedule, asked.name,
            asked.description, asked.pipeline, asked.version, spec, asked.scheduled,
            asked.service_account, json.dumps(asked.config),
        ),
    )  # fmt: skip
    graph.connection.rows(_NEWEST, (now, asked.experiment, now))
    return asked.id


def get(graph: Graph, run: str) -> Run:
    row = graph.connection.one(_GET, (graph.project, run))
    if row is None:
        raise NotFound(f"no run {run}", hint="kfp run list")
    return from_row(row)


def from_row(row: tuple[Any, ...]) -> Run:
    """A row of `COLUMNS`."""
    words = list(row)
    words[3], words[14], words[18] = bool(words[3]), bool(words[14]), json.loads(words[18])
    return Run(*words)


# -- who runs it


def claim(graph: Graph, holder: str, *, now: int, lease: int, leases: LeaseWatcher) -> Run | None:
    """A run that no runner holds, held by `holder` from now on; None: there is none. Those whose
    holder is gone come first, then the oldest that is queued. One that `holder` has claimed, and
    does not know of since the answer was lost, is the first of all."""
    connection = graph.connection
    held = connection.rows(_HELD, (graph.project,))
    for run, _, by in held:
        if by == holder:
            return get(graph, str(run))
    until = [(str(run), int(lease)) for run, lease, _ in held]
    for run in leases.over(until, now=now, clock=time.monotonic()):
        if connection.one(_CLAIM, (holder, lease, run, now)):
            return get(graph, run)
    while row := connection.one(_QUEUED, (graph.project,)):
        if connection.one(_CLAIM, (holder, lease, row[0], now)):
            return get(graph, str(row[0]))
    return None


def renew_lease(graph: Graph, run: str, holder: str, *, lease: int) -> bool | None:
    """Keep a run; the answer: whether somebody wants it to end. None: it is held no more."""
    row = graph.connection.one(_HOLD, (lease, run, holder))
    return None if row is None else bool(row[0])


def mark_started(graph: Graph, run: str, holder: str) -> None:
    graph.connection.rows(_BEGAN, (time.time_ns(), run, holder))


def finish(graph: Graph, run: str, holder: str, *, state: str, error: str | None) -> bool:
    """It is over; false: somebody else holds it, and knows better."""
    row = graph.connection.one(_ENDED, (state, error, time.time_ns(), run, holder))
    return row is not None


def requeue(graph: Graph, run: str, holder: str) -> None:
    """It was stopped in peace, for others to go on with."""
    graph.connection.rows(_PUT_AWAY, (time.time_ns(), run, holder))


def release(graph: Graph, holder: str, *, blame: bool) -> None:
    """The holder is no more: others may go on at once. `blame`: the try counts."""
    graph.connection.rows(_LET_GO, (0 if blame else 1, holder))


# -- what a user wants of it


def cancel(graph: Graph, run: str) -> None:
    """It shall end; one that is over is left as it is."""
    get(graph, run)

    def change() -> None:
        now = time.time_ns()
        if not graph.connection.one(_STOP_QUEUED, (now, TERMINATED, graph.project, run)):
            graph.connection.rows(_STOP, (graph.project, run))

    graph.connection.atomically(change)


def resume(graph: Graph, run: str, *, jobs: int | None = None) -> None:
    """Go on with a run that failed or was ended: what is done stays done."""
    found = get(graph, run)
    options = {**found.config.get("options", {}), "jobs": jobs}
    config = json.dumps({**found.config, "options": options})
    if graph.connection.one(_AGAIN, (config, graph.project, run)) is None:
        raise UsageError(f"the run is {found.state}: only one that failed is tried again")


def archive(graph: Graph, run: str, *, archived: bool) -> None:
    if graph.connection.one(_ARCHIVE, (int(archived), graph.project, run)) is None:
        get(graph, run)


def delete(graph: Graph, run: str) -> None:
    """Forget that it was asked for; what was recorded of it stays."""

    def change() -> bool:
        row = graph.connection.one(_DELETE, (graph.project, run))
        if row is not None:
            pipeline_specs.delete_unused(graph, str(row[0]))
        return row is not None

    if not graph.connection.atomically(change):
        get(graph, run)
        raise Busy("the run is still running", hint="terminate it first")
