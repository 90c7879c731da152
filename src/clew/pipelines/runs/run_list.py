"""The runs of a project and how they went, from their requests and their records.

A run that a server was asked for has a request at once, and a record in the graph when it has
started. A run started with `clew pipeline run` has only a record. The command line, our routes and
Kubeflow's routes all take the state of a requested run from its request, so they agree.
"""

from dataclasses import dataclass
from typing import TypeVar, cast

from msgspec import structs

from clew.documents.document import from_nanoseconds
from clew.documents.ids import Uid
from clew.documents.pipelines.runs import Run, RunState, RunWithCounts, RunWithTasks
from clew.errors import NotFound
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.run_queue import RunRequest
from clew.pipelines.runs.run_states import FINAL_STATES
from clew.prov.graph import LATEST, Graph
from clew.prov.queries.executions import IsRunning
from clew.prov.queries.pipelines import runs as records
from clew.prov.queries.tags import load_tags
from clew.prov.row_keys import activity_key

_COUNTS = "SELECT state, COUNT(*) FROM run_request WHERE project = ? GROUP BY state"
_PAGE = f"""
SELECT uid, at FROM (
  SELECT uid, begun AS at FROM run WHERE project = ?
  UNION ALL
  SELECT id, created FROM run_request WHERE project = ? AND {run_queue.VISIBLE}
  AND id NOT IN (SELECT uid FROM run WHERE project = ?)
) AS every WHERE at < ? OR (at = ? AND uid < ?) ORDER BY at DESC, uid DESC LIMIT ?
"""  # noqa: S608
_END_OF_TIME = 2**62
_NO_UID = Uid("")
_NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class Position:
    """The position of a run in the list: its time and uid."""

    at: int = _END_OF_TIME
    uid: Uid = _NO_UID


def count_by_state(graph: Graph) -> dict[str, int]:
    """The number of requested runs in each state."""
    return {str(state): int(n) for state, n in graph.connection.rows(_COUNTS, (graph.project,))}


def list_positions(graph: Graph, after: Position, limit: int) -> list[Position]:
    """The runs after a position, newest first."""
    project = graph.project
    parameters = (project, project, project, after.at, after.at, after.uid, limit)
    return [Position(int(at), Uid(uid)) for uid, at in graph.connection.rows(_PAGE, parameters)]


def list_runs(graph: Graph, *, alive: IsRunning) -> list[Run]:
    """All runs, oldest first."""
    positions = list_positions(graph, Position(), _NO_LIMIT)
    return [get_run_summary(graph, run.uid, alive=alive) for run in reversed(positions)]


def get_run(graph: Graph, text: str, *, alive: IsRunning) -> RunWithTasks:
    """The run that `text` names by id (`r1`), uid or `latest`. `alive`: does a process hold its
    lock?"""
    text = _resolve_latest(graph, text)
    try:
        recorded = records.get_run(graph, text, alive=alive)
    except NotFound:
        request = find_request(graph, text)
        if request is None:
            raise
        found = RunWithTasks(**structs.asdict(_build_unstarted(request)), tasks=())
    else:
        found = _merge(recorded, find_request(graph, recorded.uid))
    key = activity_key(graph.project_uid, found.uid)
    return structs.replace(found, tags=tuple(load_tags(graph, [key]).get(key, ())))


def get_run_summary(graph: Graph, text: str, *, alive: IsRunning) -> Run:
    """As `get_run`, without the tasks."""
    try:
        recorded = records.get_run_summary(graph, text, alive=alive)
    except NotFound:
        request = find_request(graph, text)
        if request is None:
            raise
        return _build_unstarted(request)
    return _merge(recorded, find_request(graph, recorded.uid))


def get_run_with_counts(graph: Graph, text: str, *, alive: IsRunning) -> RunWithCounts:
    """A started run with the number of its tasks in each state, in place of the tasks."""
    recorded = records.get_run_with_counts(graph, text, alive=alive)
    return _merge(recorded, find_request(graph, recorded.uid))


def find_uid(graph: Graph, text: str) -> Uid:
    """The uid of the run that `text` names by id, uid or `latest`."""
    text = _resolve_latest(graph, text)
    try:
        return records.find_run(graph, text).uid
    except NotFound:
        if find_request(graph, text) is None:
            raise
        return Uid(text)


def _resolve_latest(graph: Graph, text: str) -> str:
    """The uid of the newest run, also if it waits to be started; any other text as it is."""
    newest = list_positions(graph, Position(), 1) if text == LATEST else []
    return newest[0].uid if newest else text


def find_request(graph: Graph, text: str) -> RunRequest | None:
    """The request of this uid; None if the run was started with the CLI or does not exist."""
    try:
        return run_queue.get_request(graph, Uid(text))
    except NotFound:
        return None


def is_finished(graph: Graph, uid: Uid, *, alive: IsRunning) -> bool:
    """Whether the run has ended; only a resume can start it again."""
    request = find_request(graph, uid)
    return not alive(uid) and (request is None or request.state in FINAL_STATES)


R = TypeVar("R", bound=Run)


def _merge(recorded: R, request: RunRequest | None) -> R:
    if request is None:
        return structs.replace(recorded, created=recorded.started)
    state = "pending" if request.state == "queued" else cast("RunState", request.state)
    return structs.replace(
        recorded,
        name=request.name or recorded.name,
        state=state,
        # An interrupted run is resumed: its recorded error does not count while it is queued.
        error=(request.error or recorded.error) if state in FINAL_STATES else None,
        created=from_nanoseconds(request.created),
        experiment=request.experiment,
    )


def _build_unstarted(request: RunRequest) -> Run:
    return Run(
        id=None,
        uid=Uid(request.id),
        name=request.name,
        state=cast("RunState", request.state) if request.state in FINAL_STATES else "pending",
        started=None,
        ended=None if request.finished is None else from_nanoseconds(request.finished),
        seconds=None,
        file=None,
        inputs=request.config.get("parameters") or {},
        outputs={},
        error=request.error,
        created=from_nanoseconds(request.created),
        experiment=request.experiment,
    )
