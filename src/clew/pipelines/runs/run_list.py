"""The list of all runs: those requested from the server and those started with the CLI."""

from __future__ import annotations

from dataclasses import dataclass

from clew.errors import NotFound
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.run_queue import Run
from clew.prov.graph import Graph

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


@dataclass(frozen=True)
class Position:
    """The position of a run in the list: its time and uid."""

    at: int = _END_OF_TIME
    uid: str = ""


def count_by_state(graph: Graph) -> dict[str, int]:
    """The number of requested runs in each state."""
    return {str(state): int(n) for state, n in graph.connection.rows(_COUNTS, (graph.project,))}


def list_runs(graph: Graph, after: Position, limit: int) -> list[Position]:
    """The runs after a position, newest first."""
    project = graph.project
    parameters = (project, project, project, after.at, after.at, after.uid, limit)
    return [Position(int(at), str(uid)) for uid, at in graph.connection.rows(_PAGE, parameters)]


def find_request(graph: Graph, uid: str) -> Run | None:
    """The request of this uid; None if the run was started with the CLI or does not exist."""
    try:
        return run_queue.get(graph, uid)
    except NotFound:
        return None
