"""How a pipeline run went, change by change: what somebody is told who watches it.

Changes are numbered as the run told of them, and nothing is told later under a smaller number: so
whoever has heard of one has heard of all before it.
"""

from __future__ import annotations

import json
from typing import Any

from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.prov.queries.pipelines.runs import RunRef

_SINCE = """
SELECT told.n, told.at, told.what, told.facets, s.kind, s.name FROM (
  SELECT id, n, at, 'started' AS what, facets FROM started WHERE execution = ?
  UNION ALL
  SELECT s.id, e.n, e.at, 'ended', e.facets FROM ended e JOIN started s ON s.id = e.activity
  WHERE s.execution = ?
) AS told JOIN started s ON s.id = told.id WHERE told.n > ? ORDER BY told.n
"""


def list_changes(graph: Graph, run: RunRef, *, since: int = 0) -> list[dict[str, Any]]:
    """What happened after the change number `since`, in order."""
    rows = graph.connection.rows(_SINCE, (run.key, run.key, since))
    return [_change(run, *row) for row in rows]


def _change(
    run: RunRef, n: int, at: int, what: str, facets: str, kind: str, name: str | None
) -> dict[str, Any]:
    told = json.loads(facets) if what == "ended" else {}
    return {
        "n": int(n),
        "at": format_time(at),
        "run": run.id,
        "kind": kind,
        "task": f"{run.id}/{name}" if kind == "task" else None,
        "name": name,
        "change": what,
        "state": told.get("state", "running"),
        "reused_from": told.get("reused_from"),
        "why": told.get("why"),
        "error": told.get("error"),
    }
