"""Versions of pipelines: the texts that each had."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from clew.errors import NotFound
from clew.prov.graph import Graph
from clew.server.catalogue import pipeline_specs

COLUMNS = "id, name, display_name, description, created, tags, pipeline, spec"
_CREATE = f"""
INSERT INTO pipeline_version ({COLUMNS}, project) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING RETURNING id
"""  # noqa: S608
_OF = f"SELECT {COLUMNS} FROM pipeline_version WHERE project = ? AND pipeline = ?"  # noqa: S608
_GET = f"{_OF} AND id = ?"
_NEWEST = f"{_OF} ORDER BY created DESC, id DESC LIMIT 1"
_ANY = f"SELECT {COLUMNS} FROM pipeline_version WHERE project = ? AND id = ?"  # noqa: S608
_UPDATE = """
UPDATE pipeline_version SET display_name = ?, description = ?, tags = ?
WHERE project = ? AND pipeline = ? AND id = ? RETURNING id
"""
_DELETE = """
DELETE FROM pipeline_version WHERE project = ? AND pipeline = ? AND id = ? RETURNING spec
"""
_SOME = "SELECT 1 FROM pipeline_version WHERE project = ? AND pipeline = ? LIMIT 1"
_DELETE_ALL = "DELETE FROM pipeline_version WHERE project = ? AND pipeline = ? RETURNING spec"


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """What a new version, or a new pipeline, shall be called."""

    name: str
    display_name: str = ""
    description: str = ""
    tags: dict[str, str] = field(default_factory=dict)

    def row(self) -> tuple[str, str, str, str, int, str]:
        """An id, and what is said, in the order of either table's columns."""
        made, now = uuid.uuid4().hex, time.time_ns()
        called = self.display_name or self.name
        return made, self.name, called, self.description, now, encode_tags(self.tags)


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
    """By what `specs` finds its text."""


def encode_tags(tags: dict[str, str]) -> str:
    """Tags in one spelling, so that a pair is found in it as a text."""
    return json.dumps(tags, sort_keys=True, ensure_ascii=False)


def insert(graph: Graph, pipeline: str, asked: Metadata, spec: str) -> str | None:
    """Within a transaction: a version with the text `spec`; None: the name is taken."""
    digest = pipeline_specs.store_spec(graph, spec)
    made = graph.connection.one(_CREATE, (*asked.row(), pipeline, digest, graph.project))
    if made is None:
        pipeline_specs.delete_unused(graph, digest)
        return None
    return str(made[0])


def get(graph: Graph, pipeline: str, version: str) -> Version:
    row = graph.connection.one(_GET, (graph.project, pipeline, version))
    if row is None:
        raise _unknown(version)
    return from_row(row)


def resolve(graph: Graph, pipeline: str, version: str) -> Version:
    """The version that a run shall be of: the newest of the pipeline, where none is named."""
    if version and pipeline:
        return get(graph, pipeline, version)
    if version:
        row = graph.connection.one(_ANY, (graph.project, version))
    else:
        row = graph.connection.one(_NEWEST, (graph.project, pipeline))
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
    words = list(row)
    words[5] = json.loads(words[5])
    return Version(*words)


def update(graph: Graph, version: Version) -> None:
    """Change what it is called and said to be."""
    said = (version.display_name, version.description, encode_tags(version.tags))
    where = (graph.project, version.pipeline, version.id)
    if graph.connection.one(_UPDATE, (*said, *where)) is None:
        raise _unknown(version.id)


def delete(graph: Graph, pipeline: str, version: str) -> None:
    """Runs of it stay."""

    def change() -> None:
        row = graph.connection.one(_DELETE, (graph.project, pipeline, version))
        if row is None:
            raise _unknown(version)
        pipeline_specs.delete_unused(graph, str(row[0]))

    graph.connection.atomically(change)


def has_versions(graph: Graph, pipeline: str) -> bool:
    return graph.connection.one(_SOME, (graph.project, pipeline)) is not None


def delete_all(graph: Graph, pipeline: str) -> None:
    """Within a transaction: all versions of a pipeline."""
    found = graph.connection.rows(_DELETE_ALL, (graph.project, pipeline))
    for digest in {str(row[0]) for row in found}:
        pipeline_specs.delete_unused(graph, digest)


def _unknown(version: str) -> NotFound:
    return NotFound(f"no pipeline version {version}", hint="kfp pipeline list-versions")
