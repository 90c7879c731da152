"""Pipelines, by name; what they are is in their versions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from clew.errors import Exists, NotFound, UsageError
from clew.prov.graph import Graph
from clew.server.catalogue import versions
from clew.server.catalogue.versions import Metadata

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
_HOLD = "UPDATE pipeline SET name = name WHERE project = ? AND id = ? RETURNING id"
_DELETE = "DELETE FROM pipeline WHERE project = ? AND id = ?"


@dataclass(frozen=True)
class Pipeline:
    id: str
    name: str
    display_name: str
    description: str
    created: int
    tags: dict[str, str]


def create(graph: Graph, asked: Metadata, *, spec: str | None = None) -> str:
    """A pipeline; with `spec` (its text) also its first version, called like it."""

    def insert() -> str | None:
        made = graph.connection.one(_CREATE, (*asked.row(), graph.project))
        if made is None:
            return None
        if spec is not None:
            versions.insert(graph, str(made[0]), asked, spec)
        return str(made[0])

    made = graph.connection.atomically(insert)
    if made is None:
        raise Exists(
            f"there is a pipeline {asked.name!r} already",
            hint="upload a version of it: kfp pipeline create-version",
        )
    return made


def add_version(graph: Graph, pipeline: str, asked: Metadata, *, spec: str) -> str:
    """Another version of a pipeline that is there."""

    def insert() -> str | None:
        if graph.connection.one(_HOLD, (graph.project, pipeline)) is None:
            raise _unknown(pipeline)
        return versions.insert(graph, pipeline, asked, spec)

    made = graph.connection.atomically(insert)
    if made is None:
        raise Exists(
            f"there is a version {asked.name!r} of the pipeline already", hint="name it otherwise"
        )
    return made


def get(graph: Graph, pipeline: str) -> Pipeline:
    row = graph.connection.one(_GET, (graph.project, pipeline))
    if row is None:
        raise _unknown(pipeline)
    return from_row(row)


def get_by_name(graph: Graph, name: str) -> Pipeline:
    row = graph.connection.one(_BY_NAME, (graph.project, name))
    if row is None:
        raise _unknown(name)
    return from_row(row)


def from_row(row: tuple[Any, ...]) -> Pipeline:
    """A row of `COLUMNS`."""
    words = list(row)
    words[5] = json.loads(words[5])
    return Pipeline(*words)


def update(graph: Graph, pipeline: Pipeline) -> None:
    """Change what it is called and said to be; its name stays, by which others know it."""
    said = (pipeline.display_name, pipeline.description, versions.encode_tags(pipeline.tags))
    if graph.connection.one(_UPDATE, (*said, graph.project, pipeline.id)) is None:
        raise _unknown(pipeline.id)


def delete(graph: Graph, pipeline: str, *, cascade: bool) -> None:
    """With `cascade` its versions too; without, one that has any stays. Runs of it stay."""

    def change() -> None:
        if graph.connection.one(_HOLD, (graph.project, pipeline)) is None:
            raise _unknown(pipeline)
        if not cascade and versions.has_versions(graph, pipeline):
            raise UsageError(
                "the pipeline has versions", hint="delete these first, or ask with cascade=true"
            )
        versions.delete_all(graph, pipeline)
        graph.connection.rows(_DELETE, (graph.project, pipeline))

    graph.connection.atomically(change)


def _unknown(pipeline: str) -> NotFound:
    return NotFound(f"no pipeline {pipeline}", hint="kfp pipeline list")
