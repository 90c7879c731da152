"""Every run there is: those that were asked for here, and those that somebody ran by hand."""

from __future__ import annotations

from dataclasses import dataclass

from clew.errors import NotFound
from clew.prov.graph import Graph
from clew.server.catalogue import runs
from clew.server.catalogue.runs import Run

_COUNTS = "SELECT state, COUNT(*) FROM run WHERE project = ? GROUP BY state"
_PAGE = """
SELECT uid, at FROM (
  SELECT uid, begun AS at FROM execution WHERE project = ? AND number < 0
  UNION ALL
  SELECT id, created FROM run WHERE project = ?
  AND id NOT IN (SELECT uid FROM execution WHERE project = ? AND number < 0)
) AS every WHERE at < ? OR (at = ? AND uid < ?) ORDER BY at DESC, uid DESC LIMIT ?
"""
_EVER = 2**62


@dataclass(frozen=True)
class Position:
    """Where in the list of all runs one stands."""

    at: int = _EVER
    uid: str = ""


def count_by_state(graph: Graph) -> dict[str, int]:
    """How many runs that were asked for are in each state."""
    return {str(state): int(n) for state, n in graph.connection.rows(_COUNTS, (graph.project,))}


def list_runs(graph: Graph, after: Position, limit: int) -> list[Position]:
    """Runs after that place, the newest first."""
    project = graph.project
    about = (project, project, project, after.at, after.at, after.uid, limit)
    return [Position(int(at), str(uid)) for uid, at in graph.connection.rows(_PAGE, about)]


def find_request(graph: Graph, uid: str) -> Run | None:
    """What was asked for under this uid; None: somebody ran it by hand, or nobody did."""
    try:
        return runs.get(graph, uid)
    except NotFound:
        return None
