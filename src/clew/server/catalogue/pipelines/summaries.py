"""Pipelines, schedules and experiments with what belongs to them, for the pages that list them.

Each list takes a fixed number of queries, however long it is.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

from clew.documents.document import from_nanoseconds
from clew.documents.ids import Uid
from clew.documents.pipelines.catalogue import (
    Experiment,
    LastRun,
    NamedReference,
    Pipeline,
    PipelineVersion,
    Schedule,
)
from clew.documents.pipelines.runs import RunState
from clew.pipelines.runs.run_queue import VISIBLE
from clew.pipelines.runs.run_states import FINAL_STATES
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import experiments, pipelines, samples, schedules, versions

# ruff: noqa: S608  (the only names put into SQL here are our own)

MAX_ROWS = 1000
_SHOWN_TIMES = 3
_MATCHING = """
FROM pipeline WHERE project = ? AND archived <= ?
AND (LOWER(name) LIKE ? ESCAPE '!' OR LOWER(display_name) LIKE ? ESCAPE '!'
     OR LOWER(description) LIKE ? ESCAPE '!')
"""
_COUNT = f"SELECT COUNT(*) {_MATCHING}"
_PIPELINES = f"""
SELECT {pipelines.COLUMNS} {_MATCHING} ORDER BY LOWER(display_name), id LIMIT {MAX_ROWS}
"""
_ARCHIVED = "SELECT id FROM pipeline WHERE project = ? AND archived > 0 AND id IN ({})"
_NEWEST_VERSIONS = f"""
SELECT {versions.COLUMNS}, total FROM (
  SELECT {versions.COLUMNS}, COUNT(*) OVER (PARTITION BY pipeline) AS total,
    ROW_NUMBER() OVER (PARTITION BY pipeline ORDER BY created DESC, id DESC) AS place
  FROM pipeline_version WHERE project = ? AND pipeline IN ({{}})
) AS ranked WHERE place = 1
"""
_VERSIONS = f"""
SELECT {versions.COLUMNS} FROM pipeline_version WHERE project = ? AND pipeline = ?
ORDER BY created DESC, id DESC LIMIT {MAX_ROWS}
"""
_NEWEST_RUNS = f"""
SELECT owner, id, state, created, total FROM (
  SELECT {{column}} AS owner, id, state, created, COUNT(*) OVER (PARTITION BY {{column}}) AS total,
    ROW_NUMBER() OVER (PARTITION BY {{column}} ORDER BY created DESC, id DESC) AS place
  FROM run_request WHERE project = ? AND {VISIBLE} AND {{column}} IN ({{marks}})
) AS ranked WHERE place = 1
"""
_SCHEDULE_COUNTS = """
SELECT {column}, COUNT(*) FROM schedule WHERE project = ? AND {column} IN ({marks})
GROUP BY {column}
"""
_SCHEDULES = f"SELECT {schedules.COLUMNS} FROM schedule WHERE project = ?"
_NEWEST_FIRST = f"ORDER BY created DESC, id DESC LIMIT {MAX_ROWS}"
_NAMES = "SELECT id, {name} FROM {table} WHERE project = ? AND id IN ({marks})"
_EXPERIMENTS = f"""
SELECT {experiments.COLUMNS} FROM experiment WHERE project = ?
ORDER BY LOWER(name), id LIMIT {MAX_ROWS}
"""


class _Runs(NamedTuple):
    total: int
    last: LastRun | None


_NO_RUNS = _Runs(0, None)


def list_pipelines(
    graph: Graph, text: str = "", *, archived: bool = False
) -> tuple[list[Pipeline], int]:
    """The pipelines whose name or description contains the text, and how many match. `archived`:
    also those in the archive."""
    pattern = f"%{_escape(text.lower())}%"
    parameters = (graph.project, int(archived), pattern, pattern, pattern)
    rows = graph.connection.rows(_PIPELINES, parameters)
    total = graph.connection.row(_COUNT, parameters)
    return _complete_pipelines(graph, rows), int(total[0]) if total else 0


def get_pipeline(graph: Graph, pipeline: str) -> Pipeline:
    found = pipelines.get(graph, pipeline)
    return _describe_pipelines(graph, [found])[0]


def list_versions(graph: Graph, pipeline: str) -> list[PipelineVersion]:
    """Newest first."""
    rows = graph.connection.rows(_VERSIONS, (graph.project, pipeline))
    return [_describe_version(versions.from_row(row)) for row in rows]


def list_schedules(graph: Graph, pipeline: str | None = None) -> list[Schedule]:
    """All schedules, or those of a pipeline."""
    sql = _SCHEDULES
    parameters: list[object] = [graph.project]
    if pipeline is not None:
        sql, parameters = f"{sql} AND pipeline = ?", [graph.project, pipeline]
    rows = graph.connection.rows(f"{sql} {_NEWEST_FIRST}", parameters)
    return _describe_schedules(graph, [schedules.from_row(row) for row in rows])


def get_schedule(graph: Graph, schedule: str) -> Schedule:
    return _describe_schedules(graph, [schedules.get(graph, schedule)])[0]


def list_experiments(graph: Graph) -> list[Experiment]:
    rows = graph.connection.rows(_EXPERIMENTS, (graph.project,))
    found = [experiments.from_row(row) for row in rows]
    ids = [one.id for one in found]
    runs = _newest_runs(graph, "experiment", ids)
    counts = _count_schedules(graph, "experiment", ids)
    return [
        Experiment(
            id=one.id,
            name=one.name,
            description=one.description,
            created=from_nanoseconds(one.created),
            archived=one.archived,
            runs=runs.get(one.id, _NO_RUNS).total,
            schedules=counts.get(one.id, 0),
            last_run=runs.get(one.id, _NO_RUNS).last,
        )
        for one in found
    ]


def _complete_pipelines(graph: Graph, rows: Iterable[Sequence[Any]]) -> list[Pipeline]:
    return _describe_pipelines(graph, [pipelines.from_row(tuple(row)) for row in rows])


def _describe_pipelines(graph: Graph, found: list[pipelines.Pipeline]) -> list[Pipeline]:
    ids = [one.id for one in found]
    newest = {
        version.pipeline: (version, int(row[-1]))
        for row in graph.connection.rows_in(_NEWEST_VERSIONS, ids, before=(graph.project,))
        for version in (versions.from_row(row[:-1]),)
    }
    runs = _newest_runs(graph, "pipeline", ids)
    counts = _count_schedules(graph, "pipeline", ids)
    archived = {row[0] for row in graph.connection.rows_in(_ARCHIVED, ids, before=(graph.project,))}
    return [
        Pipeline(
            id=one.id,
            name=one.name,
            display_name=one.display_name,
            description=one.description,
            created=from_nanoseconds(one.created),
            sample=one.tags.get(samples.TAG),
            versions=newest[one.id][1] if one.id in newest else 0,
            latest=_describe_version(newest[one.id][0]) if one.id in newest else None,
            runs=runs.get(one.id, _NO_RUNS).total,
            last_run=runs.get(one.id, _NO_RUNS).last,
            schedules=counts.get(one.id, 0),
            archived=one.id in archived,
        )
        for one in found
    ]


def _describe_version(version: versions.Version) -> PipelineVersion:
    return PipelineVersion(
        id=version.id,
        name=version.name,
        display_name=version.display_name,
        description=version.description,
        created=from_nanoseconds(version.created),
    )


def _describe_schedules(graph: Graph, found: list[schedules.Schedule]) -> list[Schedule]:
    runs = _newest_runs(graph, "schedule", [one.id for one in found])
    names = {
        table: _names_of(graph, table, name, ids)
        for table, name, ids in (
            ("pipeline", "display_name", {one.pipeline for one in found}),
            ("pipeline_version", "display_name", {one.version for one in found}),
            ("experiment", "name", {one.experiment for one in found}),
        )
    }
    return [
        Schedule(
            id=one.id,
            name=one.name,
            description=one.description,
            enabled=one.enabled,
            cron=one.cron,
            interval=one.interval,
            starts=None if one.starts is None else from_nanoseconds(one.starts),
            ends=None if one.ends is None else from_nanoseconds(one.ends),
            next=tuple(map(from_nanoseconds, _next_times(one))) if one.enabled else (),
            max_concurrency=one.most,
            catchup=one.catchup,
            pipeline=names["pipeline"].get(one.pipeline or ""),
            version=names["pipeline_version"].get(one.version or ""),
            experiment=names["experiment"].get(one.experiment),
            parameters=one.config.get("parameters") or {},
            created=from_nanoseconds(one.created),
            runs=runs.get(one.id, _NO_RUNS).total,
            last_run=runs.get(one.id, _NO_RUNS).last,
        )
        for one in found
    ]


def _next_times(schedule: schedules.Schedule) -> list[int]:
    return schedules.following_ticks(schedule, schedule.next, _SHOWN_TIMES)


def _newest_runs(graph: Graph, column: str, owners: list[str]) -> dict[str, _Runs]:
    """The number of runs of each, and its newest one. `column`: of `run_request`."""
    sql = _NEWEST_RUNS.replace("{column}", column).replace("{marks}", "{}")
    return {
        str(owner): _Runs(
            int(count),
            LastRun(uid=Uid(uid), state=_state(state), created=from_nanoseconds(created)),
        )
        for owner, uid, state, created, count in graph.connection.rows_in(
            sql, owners, before=(graph.project,)
        )
    }


def _state(state: str) -> RunState:
    if state == "queued":
        return "pending"
    return cast("RunState", state) if state in FINAL_STATES else "running"


def _count_schedules(graph: Graph, column: str, owners: list[str]) -> dict[str, int]:
    sql = _SCHEDULE_COUNTS.replace("{column}", column).replace("{marks}", "{}")
    rows = graph.connection.rows_in(sql, owners, before=(graph.project,))
    return {str(owner): int(count) for owner, count in rows}


def _names_of(
    graph: Graph, table: str, column: str, ids: Iterable[str | None]
) -> dict[str, NamedReference]:
    sql = _NAMES.replace("{name}", column).replace("{table}", table).replace("{marks}", "{}")
    rows = graph.connection.rows_in(sql, filter(None, ids), before=(graph.project,))
    return {str(id_): NamedReference(id=str(id_), name=str(name)) for id_, name in rows}


def _escape(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
