"""Select activities from the index, a page at a time."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from clew.documents.document import from_nanoseconds
from clew.documents.project.activities import Activity, Git
from clew.prov.graph import Graph
from clew.prov.queries.formats import execution_id, run_id
from clew.prov.queries.tags import load_tags
from clew.server.catalogue.activities.conditions import Conditions
from clew.server.catalogue.activities.sort_order import Sorting
from clew.server.catalogue.activities.summary_row import METRIC, PARAMETER

# ruff: noqa: S608  (the only names put into SQL here are our own)

_COLUMNS = (
    "x.id, x.uid, x.type, x.number, x.name, x.state, x.command, x.started, x.ended, x.seconds,"
    " x.git, x.agent, x.made_elsewhere, x.kind, x.experiment, x.error, x.parent, x.task,"
    " x.archived"
)
_VALUES = """
SELECT activity, kind, name, number, text FROM activity_value WHERE activity IN ({})
ORDER BY activity, position
"""
_NUMBERS = "SELECT id, number FROM execution WHERE id IN ({})"
_EXPERIMENTS = "SELECT id, name FROM experiment WHERE id IN ({})"
_NAMES = """
WITH RECURSIVE names (name) AS (
  SELECT min(name) FROM activity_value WHERE project = ? AND kind = ?
  UNION ALL
  SELECT (SELECT min(v.name) FROM activity_value v
          WHERE v.project = ? AND v.kind = ? AND v.name > names.name)
  FROM names WHERE names.name IS NOT NULL
) SELECT name FROM names WHERE name IS NOT NULL LIMIT 500
"""
"""The distinct names, each found with one step in an index."""
_COUNTS = """
SELECT type, state, count(*) FROM activity_summary
WHERE project = ? AND type IN ('execution', 'run') GROUP BY type, state
"""


class Page(NamedTuple):
    activities: list[Activity]
    next: str | None


def select_activities(
    graph: Graph,
    conditions: Conditions,
    sorting: Sorting,
    *,
    limit: int,
    after: str | None = None,
    offset: int = 0,
) -> Page:
    """At most `limit` activities after a position, or after so many others, and the position after
    them. A table that is scrolled to any place needs the offset; a client that reads all pages
    needs positions, which do not shift when activities are added."""
    sql = f"SELECT {sorting.keys}, {_COLUMNS} FROM activity_summary x {sorting.join}"
    sql += f" WHERE x.project = ? AND {conditions.sql}"
    parameters = [*sorting.parameters, graph.project, *conditions.parameters]
    if after is not None:
        sql += f" AND {sorting.is_after}"
        parameters += sorting.decode_position(after)
    sql += f" ORDER BY {sorting.order_by} LIMIT ? OFFSET ?"
    rows = graph.connection.rows(sql, (*parameters, limit + 1, offset))
    shown = rows[:limit]
    position = sorting.encode_position(shown[-1][:3]) if len(rows) > limit else None
    return Page(_build_activities(graph, [row[3:] for row in shown]), position)


def count_activities(graph: Graph, conditions: Conditions) -> int:
    sql = f"SELECT count(*) FROM activity_summary x WHERE x.project = ? AND {conditions.sql}"
    return int(graph.connection.rows(sql, (graph.project, *conditions.parameters))[0][0])


def count_by_state(graph: Graph) -> dict[tuple[str, str], int]:
    """The number of executions, without those of tasks, and of runs, by type and state."""
    rows = graph.connection.rows(_COUNTS, (graph.project,))
    return {(str(kind), str(state)): int(count) for kind, state, count in rows}


def list_names(graph: Graph) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of all parameters and of all metrics; the first 500 of each."""
    parameters, metrics = (
        tuple(str(name) for (name,) in graph.connection.rows(_NAMES, (graph.project, kind) * 2))
        for kind in (PARAMETER, METRIC)
    )
    return parameters, metrics


def _build_activities(graph: Graph, rows: Sequence[tuple[Any, ...]]) -> list[Activity]:
    keys = [row[0] for row in rows]
    parameters: dict[int, dict[str, Any]] = {key: {} for key in keys}
    metrics: dict[int, dict[str, float | None]] = {key: {} for key in keys}
    for key, kind, name, number, text in graph.connection.rows_in(_VALUES, keys):
        if kind == METRIC:
            metrics[key][name] = number
        else:
            parameters[key][name] = json.loads(text)
    tags = load_tags(graph, keys)
    experiments: dict[str, str] = dict(
        graph.connection.rows_in(_EXPERIMENTS, {row[14] for row in rows if row[14] is not None})
    )
    parents = {row[16] for row in rows if row[16] is not None}
    numbers: dict[int, int] = dict(graph.connection.rows_in(_NUMBERS, parents))
    return [
        _build_activity(
            row,
            parameters[row[0]],
            metrics[row[0]],
            tags.get(row[0], []),
            numbers.get(row[16]),
            experiments.get(row[14]),
        )
        for row in rows
    ]


def _build_activity(
    row: tuple[Any, ...],
    parameters: dict[str, Any],
    metrics: dict[str, float | None],
    tags: Sequence[str],
    parent: int | None,
    experiment_name: str | None,
) -> Activity:
    (_, uid, kind, number, name, state, command, started, ended, seconds, git, agent, elsewhere,
     mode, experiment, error, _, task, archived) = row  # fmt: skip
    id_ = uid if number is None else run_id(number) if kind == "run" else execution_id(number)
    return Activity(
        id=id_,
        uid=uid,
        type=kind,
        name=name,
        state=state,
        command=tuple(json.loads(command)),
        started=None if started is None else from_nanoseconds(round(started * 1e9)),
        ended=None if ended is None else from_nanoseconds(round(ended * 1e9)),
        seconds=seconds,
        parameters=parameters,
        metrics=metrics,
        git=Git(**json.loads(git)) if git else None,
        tags=tuple(tags),
        agent=agent,
        made_elsewhere=bool(elsewhere),
        kind=mode,
        experiment=experiment,
        experiment_name=experiment_name,
        error=error,
        of=None if parent is None else execution_id(parent),
        task=task,
        archived=bool(archived),
    )
