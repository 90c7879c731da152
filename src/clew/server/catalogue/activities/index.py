"""Keeps the index of activities up to date.

A refresh adds what is new, and makes the rows of what may have changed again. Reading metrics takes
a limited time: those of the newest activities come first, and the next refresh continues.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from clew.api.local.project import LocalProject
from clew.db.connection_interface import MAX_VALUES, Row
from clew.documents.ids import Uid
from clew.pipelines.runs.run_queue import VISIBLE
from clew.prov.graph import Graph
from clew.prov.queries.executions import NOT_OF_CLUSTER
from clew.run.spool_directories import list_spools
from clew.server.catalogue.activities.execution_rows import build_execution_rows
from clew.server.catalogue.activities.recorded_results import add_metrics
from clew.server.catalogue.activities.run_rows import REQUEST_STAMP, build_run_rows
from clew.server.catalogue.activities.summary_row import COMPLETE, write_rows
from clew.store import Store

T = TypeVar("T")

# ruff: noqa: S608  (the only names put into SQL here are our own)

_SECONDS = 0.5
"""How long reading metrics may take: a list waits for it."""
_BATCH = 50
NEW_EXECUTIONS = f"""
SELECT x.id FROM execution x WHERE x.project = ? AND x.number >
  (SELECT coalesce(max(number), 0) FROM activity_summary WHERE project = ? AND type <> 'run')
{NOT_OF_CLUSTER} ORDER BY x.number
"""
_OPEN_EXECUTIONS = f"""
SELECT id FROM activity_summary
WHERE project = ? AND progress < {COMPLETE} AND type <> 'run' ORDER BY started DESC
"""
_CHANGED_RECORDS = f"""
SELECT r.uid FROM run r LEFT JOIN activity_summary a ON a.id = r.id
WHERE r.project = ? AND (a.id IS NULL OR a.progress < {COMPLETE} OR a.number IS NULL
  OR a.recorded <> coalesce((SELECT max(e.n) FROM ended e WHERE e.activity = r.id), 0))
ORDER BY r.number DESC
"""
_CHANGED_REQUESTS = f"""
SELECT q.id FROM run_request q LEFT JOIN activity_summary a ON a.project = ? AND a.uid = q.id
WHERE q.project = ? AND q.{VISIBLE} AND (a.id IS NULL OR a.requested <> {REQUEST_STAMP})
ORDER BY q.created DESC
"""
_DELETED_REQUESTS = f"""
SELECT a.uid FROM activity_summary a
WHERE a.project = ? AND a.type = 'run' AND a.number IS NULL AND NOT EXISTS
  (SELECT 1 FROM run_request q WHERE q.project = ? AND q.id = a.uid AND q.{VISIBLE})
"""
_RUNS = "SELECT uid FROM run WHERE project = ? AND uid IN ({})"
_FORGET = ("DELETE FROM activity_value WHERE activity IN ({})",
           "DELETE FROM activity_summary WHERE id IN ({})")  # fmt: skip


class ActivityIndex:
    """One for each server. `version` tells whether the database may have changed."""

    def __init__(self, version: Callable[[], object]) -> None:
        self._version = version
        self._refreshing = threading.Lock()
        self._seen: object = None
        self._remaining = 0

    def refresh(self, project: LocalProject) -> int:
        """Bring the index up to date; returns how many activities are still to be read."""
        with self._refreshing:
            if self._remaining or self._version() != self._seen:
                seen = self._version()
                self._remaining = refresh_index(project)
                self._seen = seen if self._remaining else self._version()
            return self._remaining


def refresh_index(project: LocalProject, *, seconds: float = _SECONDS) -> int:
    """As `ActivityIndex.refresh`, in any case."""
    until = time.monotonic() + seconds
    with Store(project.directory.store) as store:
        _add_new_executions(project, store)
        remaining = _work_until(
            until,
            [key for (key,) in _rows(project.graph, _OPEN_EXECUTIONS)],
            lambda keys: _complete_executions(project, store, keys),
        )
    return remaining + _work_until(
        until, _find_changed_runs(project), lambda uids: _make_runs(project, uids)
    )


def _add_new_executions(project: LocalProject, store: Store) -> None:
    """Add them in the order of their numbers, completely: the highest number tells which are new.
    Metrics of many are read later."""
    graph = project.graph
    new = [key for (key,) in _rows(graph, NEW_EXECUTIONS, graph.project)]
    for keys in _batches(new, MAX_VALUES):
        rows = build_execution_rows(graph, keys, alive=project.is_alive)
        write_rows(graph, add_metrics(graph, store, rows) if len(new) <= _BATCH else rows)


def _complete_executions(project: LocalProject, store: Store, keys: Sequence[int]) -> None:
    rows = build_execution_rows(project.graph, keys, alive=project.is_alive)
    write_rows(project.graph, add_metrics(project.graph, store, rows))


def _find_changed_runs(project: LocalProject) -> list[Uid]:
    graph = project.graph
    changed = [
        *_rows(graph, _CHANGED_RECORDS),
        *_rows(graph, _CHANGED_REQUESTS, graph.project),
        *_rows(graph, _DELETED_REQUESTS, graph.project),
    ]
    # A run that was resumed on this machine has ended before, but goes on.
    performed = [spool.name for spool in list_spools(project.directory)]
    resumed = graph.connection.rows_in(_RUNS, performed, before=(graph.project,))
    return [Uid(uid) for uid in dict.fromkeys(uid for (uid,) in (*resumed, *changed))]


def _make_runs(project: LocalProject, uids: Sequence[Uid]) -> None:
    graph = project.graph
    rows, gone = build_run_rows(graph, uids, alive=project.is_alive)
    write_rows(graph, rows)
    for statement in _FORGET if gone else ():
        graph.connection.rows_in(statement, gone)


def _work_until(until: float, keys: Sequence[T], work: Callable[[Sequence[T]], None]) -> int:
    """Do the work in batches until it takes too long; returns how many keys remain."""
    done = 0
    for batch in _batches(keys, _BATCH):
        if time.monotonic() > until:
            break
        work(batch)
        done += len(batch)
    return len(keys) - done


def _batches(keys: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


def _rows(graph: Graph, sql: str, *more: object) -> list[Row]:
    return graph.connection.rows(sql, (graph.project, *more))
