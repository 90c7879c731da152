"""The queue of requested runs.

A run is queued, then held by one worker at a time. The holder renews its lease; when that has
expired (see `lease_watcher`) and no process performs the run, another worker claims and resumes it.
So no run is lost with its worker, and none is performed twice at the same time.
"""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clew.documents.ids import Uid
from clew.errors import NotFound, UsageError
from clew.pipelines.runs import pipeline_specs
from clew.pipelines.runs.lease_watcher import LeaseWatcher
from clew.prov.graph import Graph

MAX_TRIES = 3
"""How many workers a run may lose before it fails: the run may be what kills them."""

COLUMNS = (
    "id, created, state, archived, experiment, schedule, name, description, pipeline, version,"
    " spec, scheduled, began, finished, stop, tries, service_account, error, config"
)
_CREATE = """
INSERT INTO run_request (id, project, created, state, archived, experiment, schedule, name,
    description, pipeline, version, spec, scheduled, stop, lease, tries, service_account, config)
VALUES (?, ?, ?, 'queued', 0, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, ?, ?) ON CONFLICT DO NOTHING
"""
_SET_LAST_RUN = """
UPDATE experiment SET last_run = ? WHERE id = ? AND (last_run IS NULL OR last_run < ?)
"""
_DELETED = 2
"""The value of `stop` for a run that is deleted as soon as its worker has ended it. Users do not
see it any more."""
VISIBLE = f"stop < {_DELETED}"
_GET = f"SELECT {COLUMNS} FROM run_request WHERE project = ? AND id = ?"  # noqa: S608
_GET_VISIBLE = f"{_GET} AND {VISIBLE}"
_HELD = """
SELECT id, lease, holder FROM run_request
WHERE project = ? AND state = 'running' ORDER BY created, id
"""
_QUEUED = """
SELECT id FROM run_request WHERE project = ? AND state = 'queued' ORDER BY created, id LIMIT 1
"""
_CLAIM = """
UPDATE run_request SET state = 'running', holder = ?, lease = ?, tries = tries + 1
WHERE id = ? AND (state = 'queued' OR (state = 'running' AND lease < ?)) RETURNING tries
"""
_RENEW = """
UPDATE run_request SET lease = ? WHERE id = ? AND holder = ? AND state = 'running' RETURNING stop
"""
_CLAIM_FINISHED = """
UPDATE run_request SET state = 'running', holder = ?, lease = ?, tries = 1, stop = 0, error = NULL
WHERE project = ? AND id = ? AND state IN ('failed', 'canceled') RETURNING id
"""
_MARK_STARTED = "UPDATE run_request SET began = COALESCE(began, ?) WHERE id = ? AND holder = ?"
_FINISH = """
UPDATE run_request SET state = ?, error = ?, finished = ?, holder = NULL, lease = 0
WHERE id = ? AND holder = ? AND state = 'running' RETURNING stop
"""
_REQUEUE = """
UPDATE run_request SET state = 'queued', finished = ?, holder = NULL, lease = 0, tries = tries - 1
WHERE id = ? AND holder = ? AND state = 'running'
"""
_RELEASE = """
UPDATE run_request SET lease = 0, tries = tries - ? WHERE holder = ? AND state = 'running'
"""
_CANCEL_QUEUED = """
UPDATE run_request SET state = 'canceled', finished = ?, error = ?, stop = 1
WHERE project = ? AND id = ? AND state = 'queued' RETURNING id
"""
_CANCEL_RUNNING = (
    "UPDATE run_request SET stop = 1 WHERE project = ? AND id = ? AND state = 'running'"
)
_RESUME = """
UPDATE run_request SET state = 'queued', stop = 0, error = NULL, tries = 0, config = ?
WHERE project = ? AND id = ? AND state IN ('failed', 'canceled') RETURNING id
"""
_ARCHIVE = "UPDATE run_request SET archived = ? WHERE project = ? AND id = ? RETURNING id"
_DELETE = (
    "DELETE FROM run_request WHERE project = ? AND id = ? AND state <> 'running' RETURNING spec"
)
_DELETE_LATER = f"""
UPDATE run_request SET stop = {_DELETED} WHERE project = ? AND id = ? AND state = 'running'
"""  # noqa: S608

TERMINATED = "terminated on request"


@dataclass(frozen=True, kw_only=True)
class RunTemplate:
    """The common part of a new run and a schedule, which makes runs.

    `config`: {parameters: {…}, pipeline_root: …, options: {…}}, where the options are jobs and
    reuse.
    """

    experiment: str
    name: str
    description: str = ""
    pipeline: str | None = None
    version: str | None = None
    service_account: str = ""
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class NewRun(RunTemplate):
    """A run to be queued."""

    spec: str
    """The text of the compiled pipeline: one or two YAML documents, or JSON."""
    schedule: str | None = None
    scheduled: int | None = None
    id: Uid = field(default_factory=lambda: Uid(uuid.uuid4().hex))


@dataclass(frozen=True)
class RunRequest:
    id: Uid
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
    """The digest of its text in `pipeline_specs`."""
    scheduled: int | None
    began: int | None
    finished: int | None
    """The time it ended; of a run that is resumed, the time it ended last."""
    stop: bool
    tries: int
    service_account: str
    error: str | None
    config: dict[str, Any]


def queue_run(graph: Graph, run: NewRun) -> Uid:
    """Queue a run and return its uid. Nothing changes if a run with this uid exists."""
    return graph.connection.atomically(lambda: insert_run(graph, run))


def insert_run(graph: Graph, run: NewRun) -> Uid:
    """Like `create`, but call within a transaction."""
    now = time.time_ns()
    spec = pipeline_specs.store_spec(graph, run.spec)
    graph.connection.rows(
        _CREATE,
        (
            run.id, graph.project, now, run.experiment, run.schedule, run.name,
            run.description, run.pipeline, run.version, spec, run.scheduled,
            run.service_account, json.dumps(run.config),
        ),
    )  # fmt: skip
    graph.connection.rows(_SET_LAST_RUN, (now, run.experiment, now))
    return run.id


def get_request(graph: Graph, run: Uid) -> RunRequest:
    return _get(graph, run, _GET_VISIBLE)


def _get(graph: Graph, run: Uid, query: str = _GET) -> RunRequest:
    row = graph.connection.row(query, (graph.project, run))
    if row is None:
        raise NotFound(f"no run {run}", hint="kfp run list")
    return from_row(row)


def from_row(row: tuple[Any, ...]) -> RunRequest:
    """A row of `COLUMNS`."""
    values = list(row)
    values[3], values[14], values[18] = bool(values[3]), bool(values[14]), json.loads(values[18])
    return RunRequest(*values)


# -- for workers


def claim_next(
    graph: Graph,
    holder: str,
    *,
    now: int,
    lease: int,
    leases: LeaseWatcher,
    is_alive: Callable[[Uid], bool] = lambda _: False,
) -> RunRequest | None:
    """Claim a run for `holder`; None if there is none.

    A run that `holder` has already claimed comes first, since the answer to that claim may have
    been lost; then runs with an expired lease; then the oldest queued run. `is_alive` tells whether
    a process holds the lock of a run: its worker lives and has only lost the database, so its
    tasks must not run a second time.
    """
    connection = graph.connection
    held = connection.rows(_HELD, (graph.project,))
    for run, _, by in held:
        if by == holder:
            return _get(graph, Uid(run))
    leases_held = [(Uid(run), int(lease)) for run, lease, _ in held]
    for run in leases.expired(leases_held, now=now, clock=time.monotonic()):
        if not is_alive(run) and connection.row(_CLAIM, (holder, lease, run, now)):
            return _get(graph, run)
    while row := connection.row(_QUEUED, (graph.project,)):
        if connection.row(_CLAIM, (holder, lease, row[0], now)):
            return _get(graph, Uid(row[0]))
    return None


def claim_finished(graph: Graph, run: Uid, holder: str, *, lease: int) -> bool:
    """Claim a failed or canceled run, to resume it; false if another process was faster."""
    return graph.connection.row(_CLAIM_FINISHED, (holder, lease, graph.project, run)) is not None


def renew_lease(graph: Graph, run: Uid, holder: str, *, lease: int) -> bool | None:
    """Renew the lease. Returns whether the run is to be canceled; None if the lease is lost."""
    row = graph.connection.row(_RENEW, (lease, run, holder))
    return None if row is None else bool(row[0])


def is_canceled(graph: Graph, run: Uid) -> bool:
    return _get(graph, run).stop


def mark_started(graph: Graph, run: Uid, holder: str) -> None:
    graph.connection.rows(_MARK_STARTED, (time.time_ns(), run, holder))


def finish_request(graph: Graph, run: Uid, holder: str, *, state: str, error: str | None) -> bool:
    """Store the result, or delete the run if a user did; false if another worker holds it now."""

    def change() -> bool:
        row = graph.connection.row(_FINISH, (state, error, time.time_ns(), run, holder))
        if row is not None and row[0] == _DELETED:
            _delete(graph, run)
        return row is not None

    return graph.connection.atomically(change)


def requeue_interrupted(graph: Graph, run: Uid, holder: str) -> None:
    """Queue an interrupted run again, without counting the try."""
    graph.connection.rows(_REQUEUE, (time.time_ns(), run, holder))


def release_claim(graph: Graph, holder: str, *, blame: bool) -> None:
    """Release the run of a dead worker. `blame`: count the try."""
    graph.connection.rows(_RELEASE, (0 if blame else 1, holder))


# -- for users


def cancel_request(graph: Graph, run: Uid) -> None:
    """Cancel a run; one that has ended stays as it is."""
    get_request(graph, run)

    def change() -> None:
        now = time.time_ns()
        if not graph.connection.row(_CANCEL_QUEUED, (now, TERMINATED, graph.project, run)):
            graph.connection.rows(_CANCEL_RUNNING, (graph.project, run))

    graph.connection.atomically(change)


def requeue_finished(graph: Graph, run: Uid, *, jobs: int | None = None) -> None:
    """Queue a failed or canceled run again. Finished tasks are not repeated."""
    found = get_request(graph, run)
    options = {**found.config.get("options", {}), "jobs": jobs}
    config = json.dumps({**found.config, "options": options})
    if graph.connection.row(_RESUME, (config, graph.project, run)) is None:
        raise UsageError(f"the run is {found.state}: only a failed or canceled run can be resumed")


def archive_request(graph: Graph, run: Uid, *, archived: bool) -> None:
    if graph.connection.row(_ARCHIVE, (int(archived), graph.project, run)) is None:
        get_request(graph, run)


def delete_request(graph: Graph, run: Uid) -> None:
    """Delete the request; the record of the run stays.

    A running run is canceled, disappears from all lists at once, and is deleted at its end.
    """
    get_request(graph, run)

    def change() -> None:
        if not _delete(graph, run):
            graph.connection.rows(_DELETE_LATER, (graph.project, run))

    graph.connection.atomically(change)


def _delete(graph: Graph, run: Uid) -> bool:
    """Call within a transaction; false if the run is running."""
    row = graph.connection.row(_DELETE, (graph.project, run))
    if row is not None:
        pipeline_specs.delete_unused(graph, str(row[0]))
    return row is not None
