"""The changes of a pipeline run, for clients that follow it.

The events of a run are numbered in the order of writing. So a client that has a change has all
changes with smaller numbers.
"""

import json
from typing import Any

from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.prov.queries.pipelines.runs import RunRef

_SINCE = """
SELECT e.n, e.at, e.change, e.facets, s.kind, s.name FROM (
  SELECT id, n, at, 'started' AS change, facets FROM started WHERE execution = ?
  UNION ALL
  SELECT s.id, e.n, e.at, 'ended', e.facets FROM ended e JOIN started s ON s.id = e.activity
  WHERE s.execution = ?
) AS e JOIN started s ON s.id = e.id WHERE e.n > ? ORDER BY e.n
"""


def list_changes(graph: Graph, run: RunRef, *, since: int = 0) -> list[dict[str, Any]]:
    """The changes after number `since`, in order."""
    rows = graph.connection.rows(_SINCE, (run.key, run.key, since))
    return [_build_change(run, *row) for row in rows]


def _build_change(
    run: RunRef, n: int, at: int, change: str, facets: str, kind: str, name: str | None
) -> dict[str, Any]:
    end = json.loads(facets) if change == "ended" else {}
    return {
        "n": int(n),
        "at": format_time(at),
        "run": run.id,
        "kind": kind,
        "task": f"{run.id}/{name}" if kind == "task" else None,
        "name": name,
        "change": change,
        "state": end.get("state", "running"),
        "reused_from": end.get("reused_from"),
        "why": end.get("why"),
        "error": end.get("error"),
    }
