"""Versions of pipelines, each with the text of a compiled pipeline."""

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from clew.errors import NotFound
from clew.pipelines.runs import pipeline_specs
from clew.prov.graph import Graph

COLUMNS = "id, name, display_name, description, created, tags, pipeline, spec"
_CREATE = f"""
INSERT INTO pipeline_version ({COLUMNS}, project) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING RETURNING id
"""  # noqa: S608
_OF_PIPELINE = f"SELECT {COLUMNS} FROM pipeline_version WHERE project = ? AND pipeline = ?"  # noqa: S608
_GET = f"{_OF_PIPELINE} AND id = ?"
_NEWEST = f"{_OF_PIPELINE} ORDER BY created DESC, id DESC LIMIT 1"
_GET_BY_ID = f"SELECT {COLUMNS} FROM pipeline_version WHERE project = ? AND id = ?"  # noqa: S608
_UPDATE = """
UPDATE pipeline_version SET display_name = ?, description = ?, tags = ?
WHERE project = ? AND pipeline = ? AND id = ? RETURNING id
"""
_DELETE = """
DELETE FROM pipeline_version WHERE project = ? AND pipeline = ? AND id = ? RETURNING spec
"""
_EXISTS = "SELECT 1 FROM pipeline_version WHERE project = ? AND pipeline = ? LIMIT 1"
_DELETE_ALL = "DELETE FROM pipeline_version WHERE project = ? AND pipeline = ? RETURNING spec"


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """The metadata of a new pipeline or version."""

    name: str
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = field(default_factory=dict)

    def row(self) -> tuple[str, str, str, str, int, str]:
        """A new id and the metadata, in the column order of both tables."""
        new_id, now = uuid.uuid4().hex, time.time_ns()
        display_name = self.display_name or self.name
        return new_id, self.name, display_name, self.description, now, encode_tags(self.tags)


@dataclass(frozen=True)
class Version:
    id: str
    name: str
    display_name: str
    description: str
    created: int
    tags: dict[str, str]
    pipeline: str
    spec: str
    """The digest of its text in `pipeline_specs`."""


def encode_tags(tags: dict[str, str]) -> str:
    """Canonical JSON, so that a LIKE pattern can find a single tag in it."""
    return json.dumps(tags, sort_keys=True, ensure_ascii=False)


def insert(graph: Graph, pipeline: str, metadata: Metadata, spec: str) -> str | None:
    """Add a version with the text `spec`; None if the name is taken. Call within a transaction."""
    digest = pipeline_specs.store_spec(graph, spec)
    created = graph.connection.row(_CREATE, (*metadata.row(), pipeline, digest, graph.project))
    if created is None:
        pipeline_specs.delete_unused(graph, digest)
        return None
    return str(created[0])


def get(graph: Graph, pipeline: str, version: str) -> Version:
    row = graph.connection.row(_GET, (graph.project, pipeline, version))
    if row is None:
        raise _unknown(version)
    return from_row(row)


def resolve(graph: Graph, pipeline: str, version: str) -> Version:
    """The version of a new run: the given one, else the latest of the pipeline."""
    if version and pipeline:
        return get(graph, pipeline, version)
    if version:
        row = graph.connection.row(_GET_BY_ID, (graph.project, version))
    else:
        row = graph.connection.row(_NEWEST, (graph.project, pipeline))
    if row is None:
        raise (
            _unknown(version)
            if version
            else NotFound(
                f"the pipeline {pipeline} has no version", hint="kfp pipeline create-version"
            )
        )
    return from_row(row)


def from_row(row: tuple[Any, ...]) -> Version:
    """A row of `COLUMNS`."""
    values = list(row)
    values[5] = json.loads(values[5])
    return Version(*values)


def update(graph: Graph, version: Version) -> None:
    """Change the display name, description and tags."""
    changes = (version.display_name, version.description, encode_tags(version.tags))
    where = (graph.project, version.pipeline, version.id)
    if graph.connection.row(_UPDATE, (*changes, *where)) is None:
        raise _unknown(version.id)


def delete(graph: Graph, pipeline: str, version: str) -> None:
    """Delete a version; its runs stay."""

    def change() -> None:
        row = graph.connection.row(_DELETE, (graph.project, pipeline, version))
        if row is None:
            raise _unknown(version)
        pipeline_specs.delete_unused(graph, str(row[0]))

    graph.connection.atomically(change)


def has_versions(graph: Graph, pipeline: str) -> bool:
    return graph.connection.row(_EXISTS, (graph.project, pipeline)) is not None


def delete_all(graph: Graph, pipeline: str) -> None:
    """Delete all versions of a pipeline. Call within a transaction."""
    rows = graph.connection.rows(_DELETE_ALL, (graph.project, pipeline))
    for digest in {str(row[0]) for row in rows}:
        pipeline_specs.delete_unused(graph, digest)


def _unknown(version: str) -> NotFound:
    return NotFound(f"no pipeline version {version}", hint="kfp pipeline list-versions")
