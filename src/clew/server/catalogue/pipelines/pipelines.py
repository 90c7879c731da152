"""Pipelines: names for series of versions."""

import json
from dataclasses import dataclass
from typing import Any

from clew.errors import Exists, NotFound, UsageError
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import versions
from clew.server.catalogue.pipelines.versions import Metadata

COLUMNS = "id, name, display_name, description, created, tags"
_CREATE = f"""
INSERT INTO pipeline ({COLUMNS}, project) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING RETURNING id
"""  # noqa: S608
_GET = f"SELECT {COLUMNS} FROM pipeline WHERE project = ? AND id = ?"  # noqa: S608
_BY_NAME = f"SELECT {COLUMNS} FROM pipeline WHERE project = ? AND name = ?"  # noqa: S608
_UPDATE = """
UPDATE pipeline SET display_name = ?, description = ?, tags = ? WHERE project = ? AND id = ?
RETURNING id
"""
_LOCK = "UPDATE pipeline SET name = name WHERE project = ? AND id = ? RETURNING id"
_ARCHIVE = "UPDATE pipeline SET archived = ? WHERE project = ? AND id = ? RETURNING id"
_DELETE = "DELETE FROM pipeline WHERE project = ? AND id = ?"


@dataclass(frozen=True)
class Pipeline:
    id: str
    name: str
    display_name: str
    description: str
    created: int
    tags: dict[str, str]


def create(graph: Graph, metadata: Metadata, *, spec: str | None = None) -> str:
    """Create a pipeline; with `spec` (its text) also its first version, of the same name."""

    created = graph.connection.atomically(lambda: insert(graph, metadata, spec))
    if created is None:
        raise Exists(
            f"the pipeline {metadata.name!r} already exists",
            hint="upload a version of it: kfp pipeline create-version",
        )
    return created


def insert(graph: Graph, metadata: Metadata, spec: str | None) -> str | None:
    """As `create`; None if the name is taken. Call within a transaction."""
    created = graph.connection.row(_CREATE, (*metadata.row(), graph.project))
    if created is None:
        return None
    if spec is not None:
        versions.insert(graph, str(created[0]), metadata, spec)
    return str(created[0])


def add_version(graph: Graph, pipeline: str, metadata: Metadata, *, spec: str) -> str:
    """Add a version to a pipeline."""

    def insert() -> str | None:
        if graph.connection.row(_LOCK, (graph.project, pipeline)) is None:
            raise _unknown(pipeline)
        return versions.insert(graph, pipeline, metadata, spec)

    created = graph.connection.atomically(insert)
    if created is None:
        raise Exists(
            f"the pipeline already has a version {metadata.name!r}", hint="choose another name"
        )
    return created


def get(graph: Graph, pipeline: str) -> Pipeline:
    row = graph.connection.row(_GET, (graph.project, pipeline))
    if row is None:
        raise _unknown(pipeline)
    return from_row(row)


def get_by_name(graph: Graph, name: str) -> Pipeline:
    row = graph.connection.row(_BY_NAME, (graph.project, name))
    if row is None:
        raise _unknown(name)
    return from_row(row)


def from_row(row: tuple[Any, ...]) -> Pipeline:
    """A row of `COLUMNS`."""
    values = list(row)
    values[5] = json.loads(values[5])
    return Pipeline(*values)


def update(graph: Graph, pipeline: Pipeline) -> None:
    """Change the display name, description and tags; the name cannot change."""
    changes = (pipeline.display_name, pipeline.description, versions.encode_tags(pipeline.tags))
    if graph.connection.row(_UPDATE, (*changes, graph.project, pipeline.id)) is None:
        raise _unknown(pipeline.id)


def set_archived(graph: Graph, pipeline: str, archived: bool) -> None:
    """Take the pipeline out of lists, or back into them. Nothing else happens to it."""
    if graph.connection.row(_ARCHIVE, (int(archived), graph.project, pipeline)) is None:
        raise _unknown(pipeline)


def delete(graph: Graph, pipeline: str, *, cascade: bool) -> None:
    """Delete a pipeline; with `cascade` also its versions, else it must have none. Runs stay."""

    def change() -> None:
        if graph.connection.row(_LOCK, (graph.project, pipeline)) is None:
            raise _unknown(pipeline)
        if not cascade and versions.has_versions(graph, pipeline):
            raise UsageError(
                "the pipeline has versions", hint="delete them first, or use cascade=true"
            )
        versions.delete_all(graph, pipeline)
        graph.connection.rows(_DELETE, (graph.project, pipeline))

    graph.connection.atomically(change)


def _unknown(pipeline: str) -> NotFound:
    return NotFound(f"no pipeline {pipeline}", hint="kfp pipeline list")
