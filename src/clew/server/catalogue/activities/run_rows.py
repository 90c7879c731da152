"""Rows of the index for pipeline runs, with parameters and metrics."""

from collections.abc import Iterable

from clew.api.metric_collection import measure_run
from clew.documents.document import to_nanoseconds
from clew.documents.ids import Uid
from clew.documents.pipelines.runs import RunWithTasks
from clew.errors import NotFound
from clew.pipelines.runs import run_list
from clew.pipelines.runs.run_states import FINAL_STATES
from clew.prov.graph import Graph
from clew.prov.queries.executions import IsRunning
from clew.prov.row_keys import activity_key
from clew.server.catalogue.activities.summary_row import (
    CHANGING,
    COMPLETE,
    SummaryRow,
    clean,
    distinct,
    metric_values,
    parameter_values,
    search_text,
)

REQUEST_STAMP = """
q.state || ' ' || coalesce(q.finished, 0) || ' ' || q.archived || ' ' || q.stop
"""
"""The state of a request `q`, as text: a row is made again when it differs."""
_RECORDED = "SELECT activity, max(n) FROM ended WHERE activity IN ({}) GROUP BY activity"
_REQUESTED = f"""
SELECT q.id, q.archived, {REQUEST_STAMP} FROM run_request q WHERE q.project = ? AND q.id IN ({{}})
"""  # noqa: S608


def build_run_rows(
    graph: Graph, uids: Iterable[Uid], *, alive: IsRunning
) -> tuple[list[SummaryRow], list[int]]:
    """The rows of these runs, and the keys of those that do not exist any more."""
    keys = {uid: activity_key(graph.project_uid, uid) for uid in uids}
    # Read before the runs: what changes meanwhile is noticed the next time.
    recorded: dict[int, int] = dict(graph.connection.rows_in(_RECORDED, keys.values()))
    rows = graph.connection.rows_in(_REQUESTED, keys, before=(graph.project,))
    requested = {uid: (archived, stamp) for uid, archived, stamp in rows}
    found, gone = [], []
    for uid, key in keys.items():
        try:
            run = run_list.get_run(graph, uid, alive=alive)
        except NotFound:
            gone.append(key)
            continue
        archived, stamp = requested.get(uid, (0, ""))
        changes = run.state not in FINAL_STATES
        found.append(
            _build_row(graph, key, run, recorded.get(key) or 0, stamp, archived, changes=changes)
        )
    return found, gone


def _build_row(
    graph: Graph,
    key: int,
    run: RunWithTasks,
    recorded: int,
    requested: str,
    archived: int,
    *,
    changes: bool,
) -> SummaryRow:
    measured = measure_run(run)
    started = run.started or run.created
    values = [*parameter_values(run.inputs), *metric_values(measured.metrics)]
    return SummaryRow(
        id=key,
        project=graph.project,
        uid=run.uid,
        type="run",
        number=int(run.id[1:]) if run.id else None,
        state=run.state,
        progress=CHANGING if changes else COMPLETE,
        recorded=recorded,
        requested=requested,
        name=None if run.name is None else clean(run.name),
        started=None if started is None else to_nanoseconds(started) / 1e9,
        ended=None if run.ended is None else to_nanoseconds(run.ended) / 1e9,
        seconds=run.seconds,
        experiment=run.experiment,
        archived=archived,
        error=clean(_first_error(run)) if run.state == "failed" else None,
        search=search_text([run.id, run.uid, run.name, run.file]),
        values=distinct(values),
    )


def _first_error(run: RunWithTasks) -> str:
    """The error of the first failed task; else that of the run."""
    failed = next((task for task in run.tasks if task.state == "failed" and task.error), None)
    return run.error or "it failed" if failed is None else f"{failed.name}: {failed.error}"
