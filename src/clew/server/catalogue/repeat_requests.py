"""The queue of repeats that a server was asked for.

A repeat is queued, then held by one server at a time, which renews its lease. When the lease has
expired, another server claims the repeat. The uid of the new execution is chosen beforehand: who
claims a repeat again finds in the graph what is recorded already, so nothing runs twice.
"""

import hashlib
import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from clew.documents.document import from_nanoseconds
from clew.documents.executions.repeats import Repeated, RepeatedRun, RepeatOptions, RepeatRequest
from clew.documents.ids import TaskId, Uid
from clew.errors import Busy, NotFound
from clew.pipelines.runs.lease_watcher import LeaseWatcher
from clew.prov.graph import Graph

MAX_TRIES = 3
"""How many workers a repeat may lose before it fails: it may be what kills them."""
MAX_WAITING = 1000
"""Repeats of a project that have not ended."""
MAX_FINISHED = 1000
"""Finished repeats that are kept. The executions that they made stay."""

_COLUMNS = "id, target, target_uid, state, created, began, finished, options, error, verdict"
_INSERT = """
INSERT INTO repeat_request (id, project, created, state, target, target_uid, stop, lease, tries,
    options, output) VALUES (?, ?, ?, 'queued', ?, ?, 0, 0, 0, ?, '')
"""
_OPEN = """
SELECT id FROM repeat_request WHERE project = ? AND state IN ('queued', 'running') AND stop = 0
AND target_uid = ? AND options = ?
"""
_COUNT_OPEN = """
SELECT count(*) FROM repeat_request WHERE project = ? AND state IN ('queued', 'running')
"""
_DELETE_OLD = """
DELETE FROM repeat_request WHERE project = ? AND state NOT IN ('queued', 'running') AND created < (
    SELECT created FROM repeat_request WHERE project = ? AND state NOT IN ('queued', 'running')
    ORDER BY created DESC LIMIT 1 OFFSET ?
)
"""
_GET = f"SELECT {_COLUMNS}, output, result FROM repeat_request WHERE project = ? AND id = ?"  # noqa: S608
_LIST = f"""
SELECT {_COLUMNS}, '', NULL FROM repeat_request WHERE project = ? AND (? = '' OR target_uid = ?)
ORDER BY created DESC, id DESC LIMIT ?
"""  # noqa: S608
_HELD = "SELECT id, lease FROM repeat_request WHERE project = ? AND state = 'running'"
_QUEUED = """
SELECT id FROM repeat_request WHERE project = ? AND state = 'queued' ORDER BY created, id LIMIT 1
"""
_CLAIM = """
UPDATE repeat_request SET state = 'running', holder = ?, lease = ?, tries = tries + 1,
    began = COALESCE(began, ?)
WHERE id = ? AND (state = 'queued' OR (state = 'running' AND lease < ?)) RETURNING tries
"""
_RENEW = """
UPDATE repeat_request SET lease = ?, output = ? WHERE id = ? AND holder = ? AND state = 'running'
RETURNING stop
"""
_FINISH = """
UPDATE repeat_request SET state = ?, error = ?, verdict = ?, result = ?, output = ?, finished = ?,
    holder = NULL, lease = 0
WHERE id = ? AND holder = ? AND state = 'running' RETURNING id
"""
_RELEASE = """
UPDATE repeat_request SET lease = 0, holder = NULL, tries = tries - ?
WHERE id = ? AND holder = ? AND state = 'running'
"""
_CANCEL_QUEUED = """
UPDATE repeat_request SET state = 'canceled', finished = ?, stop = 1
WHERE project = ? AND id = ? AND state = 'queued' RETURNING id
"""
_CANCEL_RUNNING = """
UPDATE repeat_request SET stop = 1 WHERE project = ? AND id = ? AND state = 'running'
"""


def queue_repeat(graph: Graph, target: str, target_uid: Uid, options: RepeatOptions) -> Uid:
    """Queue a repeat. If the same one is queued or running already, return that one: a request
    that is sent twice repeats once."""
    text = msgspec.json.encode(options).decode()
    project = graph.project

    def insert() -> Uid:
        known = graph.connection.row(_OPEN, (project, target_uid, text))
        if known is not None:
            return Uid(known[0])
        waiting = graph.connection.row(_COUNT_OPEN, (project,))
        if waiting is not None and waiting[0] >= MAX_WAITING:
            raise Busy(f"{MAX_WAITING} repeats are waiting", hint="cancel some, or try again later")
        request = Uid(uuid.uuid4().hex)
        graph.connection.rows(_INSERT, (request, project, time.time_ns(), target, target_uid, text))
        graph.connection.rows(_DELETE_OLD, (project, project, MAX_FINISHED - 1))
        return request

    return graph.connection.atomically(insert)


def get_repeat(graph: Graph, request: str) -> RepeatRequest:
    row = graph.connection.row(_GET, (graph.project, request))
    if row is None:
        raise NotFound(f"no repeat {request}", hint="GET /api/v1/repeats lists them")
    return _build_document(row)


def list_repeats(graph: Graph, *, target: str = "", limit: int) -> list[RepeatRequest]:
    """The newest repeats; with `target`, those of the execution or run of this uid."""
    rows = graph.connection.rows(_LIST, (graph.project, target, target, limit))
    return [_build_document(row) for row in rows]


def _build_document(row: tuple[Any, ...]) -> RepeatRequest:
    (id_, target, target_uid, state, created, began, finished, options, error, verdict) = row[:10]
    output, result = row[10:]
    document = json.loads(result) if result else None
    is_run = document is not None and "tasks" in document
    return RepeatRequest(
        id=id_,
        target=target,
        target_uid=target_uid,
        state=state,
        created=from_nanoseconds(created),
        started=None if began is None else from_nanoseconds(began),
        ended=None if finished is None else from_nanoseconds(finished),
        options=msgspec.json.decode(options, type=RepeatOptions),
        output=output,
        error=error,
        verdict=verdict,
        result=None if document is None or is_run else msgspec.convert(document, Repeated),
        run_result=msgspec.convert(document, RepeatedRun) if is_run else None,
    )


def uid_of_task(request: Uid, task: TaskId) -> Uid:
    """The uid of the execution that repeats one task of a pipeline run."""
    return Uid(hashlib.blake2b(f"{request} {task}".encode(), digest_size=16).hexdigest())


# -- for servers


def claim_next(
    graph: Graph,
    holder: str,
    *,
    now: int,
    lease: int,
    leases: LeaseWatcher,
    is_alive: Callable[[Uid], bool] = lambda _: False,
) -> tuple[RepeatRequest, int] | None:
    """Claim a repeat for `holder`, and say how often it was claimed; None if there is none.

    Those whose lease has expired come first, then the oldest one. `is_alive` tells whether a
    process still records the execution of this uid: its server has only lost the database.
    """
    connection = graph.connection
    held = [(Uid(id_), int(end)) for id_, end in connection.rows(_HELD, (graph.project,))]
    waiting = [
        request
        for request in leases.expired(held, now=now, clock=time.monotonic())
        if not is_alive(request)
    ]
    while True:
        if waiting:
            request = waiting.pop(0)
        elif (row := connection.row(_QUEUED, (graph.project,))) is not None:
            request = Uid(row[0])
        else:
            return None
        claimed = connection.row(_CLAIM, (holder, lease, time.time_ns(), request, now))
        if claimed is not None:
            return get_repeat(graph, request), int(claimed[0])


def renew_lease(graph: Graph, request: Uid, holder: str, *, lease: int, output: str) -> bool | None:
    """Renew the lease, and store what was printed. Returns whether a user canceled the repeat; None
    if another server has claimed it."""
    row = graph.connection.row(_RENEW, (lease, output, request, holder))
    return None if row is None else bool(row[0])


def finish_repeat(
    graph: Graph,
    request: Uid,
    holder: str,
    *,
    state: str,
    output: str,
    error: str | None = None,
    result: dict[str, Any] | None = None,
) -> bool:
    """Store how it ended; false if another server holds it now."""
    verdict = None if result is None else result["verdict"]
    text = None if result is None else json.dumps(result)
    values = (state, error, verdict, text, output, time.time_ns(), request, holder)
    return graph.connection.row(_FINISH, values) is not None


def release_repeat(graph: Graph, request: Uid, holder: str, *, blame: bool) -> None:
    """Let another server claim an interrupted repeat. `blame`: count the try, because the repeat
    may be what ended its worker."""
    graph.connection.rows(_RELEASE, (0 if blame else 1, request, holder))


# -- for users


def cancel_repeat(graph: Graph, request: str) -> None:
    """Cancel a repeat; one that has ended stays as it is."""
    get_repeat(graph, request)

    def cancel() -> None:
        if not graph.connection.row(_CANCEL_QUEUED, (time.time_ns(), graph.project, request)):
            graph.connection.rows(_CANCEL_RUNNING, (graph.project, request))

    graph.connection.atomically(cancel)
