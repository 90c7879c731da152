"""Experiments: named groups of runs and schedules."""

import time
import uuid
from dataclasses import dataclass
from typing import Any

from clew.errors import Exists, NotFound, UsageError
from clew.prov.graph import Graph

DEFAULT_NAME = "Default"
"""The experiment of runs that name none."""

COLUMNS = "id, name, description, created, last_run, archived"
_CREATE = """
INSERT INTO experiment (id, project, name, description, created, archived)
VALUES (?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING RETURNING id
"""
_GET = f"SELECT {COLUMNS} FROM experiment WHERE project = ? AND id = ?"  # noqa: S608
_BY_NAME = "SELECT id FROM experiment WHERE project = ? AND name = ?"
_ARCHIVE = "UPDATE experiment SET archived = ? WHERE project = ? AND id = ? RETURNING id"
_ARCHIVE_RUNS = "UPDATE run_request SET archived = 1 WHERE experiment = ?"
_DISABLE = "UPDATE schedule SET enabled = 0, updated = ? WHERE experiment = ? AND enabled = 1"
_DELETE = "DELETE FROM experiment WHERE project = ? AND id = ? RETURNING id"


@dataclass(frozen=True)
class Experiment:
    id: str
    name: str
    description: str
    created: int
    last_run: int | None
    archived: bool


def create(graph: Graph, name: str, description: str = "") -> str:
    row = (uuid.uuid4().hex, graph.project, name, description, time.time_ns())
    created = graph.connection.row(_CREATE, row)
    if created is None:
        raise Exists(f"the experiment {name!r} already exists", hint="kfp experiment list")
    return str(created[0])


def get(graph: Graph, experiment: str) -> Experiment:
    row = graph.connection.row(_GET, (graph.project, experiment))
    if row is None:
        raise NotFound(f"no experiment {experiment}", hint="kfp experiment list")
    return from_row(row)


def from_row(row: tuple[Any, ...]) -> Experiment:
    """A row of `COLUMNS`."""
    values = list(row)
    values[5] = bool(values[5])
    return Experiment(*values)


def get_default(graph: Graph) -> str:
    """The default experiment, created when first needed."""
    row = (uuid.uuid4().hex, graph.project, DEFAULT_NAME, "", time.time_ns())
    found = graph.connection.row(_BY_NAME, (graph.project, DEFAULT_NAME))
    found = found or graph.connection.row(_CREATE, row)
    found = found or graph.connection.row(_BY_NAME, (graph.project, DEFAULT_NAME))
    assert found is not None, "this server or another has created it"
    return str(found[0])


def require_active(graph: Graph, experiment: str) -> str:
    """The experiment for a new run or schedule, which must not be archived."""
    found = get(graph, experiment or get_default(graph))
    if found.archived:
        raise UsageError(
            f"the experiment {found.name!r} is archived",
            hint=f"kfp experiment unarchive --experiment-id {found.id}",
        )
    return found.id


def archive(graph: Graph, experiment: str) -> None:
    """Archive it and its runs, and disable its schedules."""

    def change() -> bool:
        if graph.connection.row(_ARCHIVE, (1, graph.project, experiment)) is None:
            return False
        graph.connection.rows(_ARCHIVE_RUNS, (experiment,))
        graph.connection.rows(_DISABLE, (time.time_ns(), experiment))
        return True

    if not graph.connection.atomically(change):
        get(graph, experiment)


def unarchive(graph: Graph, experiment: str) -> None:
    """Unarchive it, but not its runs: some may have been archived before it was."""
    if graph.connection.row(_ARCHIVE, (0, graph.project, experiment)) is None:
        get(graph, experiment)


def delete(graph: Graph, experiment: str) -> None:
    """Delete it and disable its schedules; its runs stay."""

    def change() -> bool:
        if graph.connection.row(_DELETE, (graph.project, experiment)) is None:
            return False
        graph.connection.rows(_DISABLE, (time.time_ns(), experiment))
        return True

    if not graph.connection.atomically(change):
        get(graph, experiment)
