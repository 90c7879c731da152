"""All that is recorded of one execution, read once, for the exports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from clew.prov.graph import Graph
from clew.prov.keys import digest_text
from clew.prov.questions.executions import Found, find

_ACTIVITIES = """
SELECT s.id, s.uid, s.kind, s.number, s.parent, s.agent, s.command, s.exe, s.cwd, s.at,
       (SELECT max(e.at) FROM ended e WHERE e.activity = s.id),
       (SELECT max(e.status) FROM ended e WHERE e.activity = s.id)
FROM started s WHERE s.execution = ? ORDER BY s.id <> s.execution, s.number, s.n
"""
_VERSIONS = """
SELECT v.id, l.locator, v.ordinal, v.maker = v.execution, c.digest, c.size, c.mode, c.mtime,
       c.stored, c.package
FROM version v JOIN location l ON l.id = v.location LEFT JOIN content c ON c.version = v.id
WHERE v.execution = ? ORDER BY l.locator, v.ordinal
"""
_EDGES = """
SELECT edge.activity, edge.version, edge.at, edge.how
FROM version v JOIN {} edge ON edge.version = v.id WHERE v.execution = ?
ORDER BY edge.at, edge.n, edge.version
"""
_INFORMED = """
SELECT i.activity, i.source, min(i.at), i.via FROM started s JOIN informed i ON i.activity = s.id
WHERE s.execution = ? GROUP BY i.activity, i.source, i.via ORDER BY 3, 1, 2
"""


class Activity(NamedTuple):
    key: int
    uid: str
    kind: str
    number: int | None
    parent: int | None
    agent: str | None
    command: list[str]
    exe: str | None
    cwd: str | None
    started: int
    ended: int | None
    status: int | None


class Version(NamedTuple):
    key: int
    locator: str
    ordinal: int
    found: bool
    digest: str | None
    size: int | None
    mode: int | None
    mtime: int | None
    stored: bool
    package: str | None


class Edge(NamedTuple):
    activity: int
    version: int
    at: int
    how: str


@dataclass(frozen=True)
class Recorded:
    """One execution: its activities (itself first), the versions it met, what it did to them."""

    execution: Found
    activities: dict[int, Activity]
    versions: dict[int, Version]
    used: list[Edge]
    generated: list[Edge]
    invalidated: list[Edge]
    informed: list[tuple[int, int, int, str]]


def recorded(graph: Graph, text: str) -> Recorded:
    found = find(graph, text)
    connection = graph.connection
    activities = {
        row[0]: Activity._make((*row[:6], json.loads(row[6]), *row[7:]))
        for row in connection.rows(_ACTIVITIES, (found.key,))
    }
    versions = {
        row[0]: Version._make(
            (*row[:3], bool(row[3]), digest_text(row[4]), *row[5:8], bool(row[8]), row[9])
        )
        for row in connection.rows(_VERSIONS, (found.key,))
    }

    def edges(table: str) -> list[Edge]:
        rows = connection.rows(_EDGES.replace("{}", table), (found.key,))
        return [Edge(*row) for row in rows if row[0] in activities]

    flows: list[tuple[Any, ...]] = connection.rows(_INFORMED, (found.key,))
    return Recorded(
        execution=found,
        activities=activities,
        versions=versions,
        used=edges("used"),
        generated=edges("generated"),
        invalidated=edges("invalidated"),
        informed=[(a, b, at, via) for a, b, at, via in flows if b in activities],
    )
