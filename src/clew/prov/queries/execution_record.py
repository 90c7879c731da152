"""All that is recorded of one execution, read once: for exports, comparing and repeating.

Plain values in the order of time, so that code which decides by them needs no database.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from clew.documents.ids import Digest, Locator, Uid
from clew.errors import NoContent, NotFound
from clew.prov.event_numbers import MOVES
from clew.prov.graph import Graph
from clew.prov.queries.executions import ExecutionRef, find_execution
from clew.prov.queries.show import load_facets, load_learnt_facets
from clew.prov.row_keys import activity_key, digest_text, unpack_looks

_ACTIVITIES = """
SELECT s.id, s.uid, s.kind, s.number, s.parent, s.agent, s.command, s.exe, s.cwd, s.at,
       (SELECT max(e.at) FROM ended e WHERE e.activity = s.id),
       (SELECT max(e.status) FROM ended e WHERE e.activity = s.id),
       (SELECT max(e.signal) FROM ended e WHERE e.activity = s.id), s.environment, s.facets,
       (SELECT max(e.usage) FROM ended e WHERE e.activity = s.id), s.pid
FROM started s WHERE s.execution = ? ORDER BY s.id <> s.execution, s.number, s.n
"""
_VERSIONS = """
SELECT v.id, l.locator, v.ordinal, v.maker, v.maker = v.execution, v.at, c.digest, c.size, c.mode,
       c.mtime, c.stored, c.package
FROM version v JOIN location l ON l.id = v.location LEFT JOIN content c ON c.version = v.id
WHERE v.execution = ? ORDER BY l.locator, v.ordinal
"""
_EDGES = """
SELECT edge.activity, edge.version, edge.at, edge.how
FROM version v JOIN {} edge ON edge.version = v.id WHERE v.execution = ?
ORDER BY edge.at, edge.n, edge.version
"""
_LOOKED = """
SELECT k.activity, l.locator, k.kind, k.at, k.answer, k.also
FROM started s JOIN looked k ON k.activity = s.id JOIN location l ON l.id = k.location
WHERE s.execution = ? ORDER BY k.at, k.n
"""
_LOCATIONS = "SELECT id, locator FROM location WHERE id IN ({})"
_INFORMED = """
SELECT i.activity, i.source, min(i.at), i.via FROM started s JOIN informed i ON i.activity = s.id
WHERE s.execution = ? GROUP BY i.activity, i.source, i.via ORDER BY 3, 1, 2
"""
_GAPS = """
SELECT g.activity, g.what, g.why, l.locator
FROM started s JOIN gap g ON g.activity = s.id LEFT JOIN location l ON l.id = g.location
WHERE s.execution = ? ORDER BY g.at, g.n
"""


class Activity(NamedTuple):
    key: int
    uid: Uid
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
    signal: int | None
    environment: dict[str, str | None]
    """The execution's variables; of a process, those that differ from them."""
    facets: dict[str, Any] = {}
    """The facets it started with; of a process, `begun`."""
    usage: dict[str, float] = {}
    pid: int | None = None


class Version(NamedTuple):
    key: int
    locator: Locator
    ordinal: int
    maker: int
    found: bool
    at: int
    digest: Digest | None
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


class Look(NamedTuple):
    activity: int
    locator: Locator
    kind: str
    at: int
    answer: str


class Gap(NamedTuple):
    activity: int
    what: str
    why: str
    locator: Locator | None


@dataclass(frozen=True)
class ExecutionRecord:
    """One execution: its activities (itself first), the versions it accessed, and how."""

    execution: ExecutionRef
    facets: dict[str, Any]
    activities: dict[int, Activity]
    versions: dict[int, Version]
    used: list[Edge]
    generated: list[Edge]
    invalidated: list[Edge]
    looked: list[Look]
    informed: list[tuple[int, int, int, str]]
    gaps: list[Gap]

    @property
    def itself(self) -> Activity:
        return self.activities[self.execution.key]

    @cached_property
    def processes(self) -> list[Activity]:
        """In the order they began."""
        return [a for a in self.activities.values() if a.key != self.execution.key]

    @cached_property
    def lines(self) -> dict[Locator, list[Version]]:
        """The versions of each locator, in their order."""
        lines: dict[Locator, list[Version]] = {}
        for version in self.versions.values():
            lines.setdefault(version.locator, []).append(version)
        return lines

    @cached_property
    def left(self) -> dict[Locator, Version]:
        """By locator, what it wrote and left there: its outputs, streams among them."""
        gone = {edge.version for edge in self.invalidated}
        written = {edge.version for edge in self.generated}
        last = (line[-1] for line in self.lines.values())
        return {v.locator: v for v in last if v.key in written and v.key not in gone}

    @cached_property
    def moves(self) -> dict[int, tuple[str, Version]]:
        """By version: how it was moved (`MOVES`), and the version that has had its bytes since."""
        made: dict[tuple[int, int, str], list[Version]] = {}
        for edge in self.generated:
            if edge.how in MOVES:
                moved = made.setdefault((edge.activity, edge.at, edge.how), [])
                moved.append(self.versions[edge.version])
        found: dict[int, tuple[str, Version]] = {}
        for edge in self.used:
            for version in made.get((edge.activity, edge.at, edge.how), ()):
                # An exchange makes two versions: each file's bytes are at the other's place.
                same_place = version.locator == self.versions[edge.version].locator
                if edge.how == "metadata" and same_place:
                    found.setdefault(edge.version, (edge.how, version))
                elif edge.how != "metadata" and not same_place:
                    found[edge.version] = (edge.how, version)
        return found


def load_record(
    graph: Graph, text: str, *, inherit: bool = True, looks: bool = True
) -> ExecutionRecord:
    """The execution that `text` names (an id, a name, a uid). What it inherits of the command that
    forked it counts as its own, unless `inherit` is False. `looks`: load the looks too, which are
    most of a record."""
    record = _load(graph, find_execution(graph, text), looks)
    if record.execution.key not in record.activities:  # only of an import that is not complete
        raise NoContent(
            f"the record of {record.execution.id} has no start",
            hint=f"import it again from where it was recorded, or clew rm {record.execution.id}",
        )
    if inherit and (source := record.facets.get("inherits")):
        with suppress(NotFound):  # it was removed
            return _with_inherited_reads(
                record, _load(graph, find_execution(graph, str(source)), looks)
            )
    return record


def _with_inherited_reads(record: ExecutionRecord, source: ExecutionRecord) -> ExecutionRecord:
    """The record, with the inherited execution's accesses added before its own."""
    if not record.processes:
        return record
    root = record.processes[0]
    at = root.facets.get("begun", {}).get("at", root.started)
    return replace(
        record,
        versions={**source.versions, **record.versions},
        used=[*(edge._replace(activity=root.key, at=at) for edge in source.used), *record.used],
        looked=[
            *(look._replace(activity=root.key, at=at) for look in source.looked),
            *record.looked,
        ],
        gaps=[*(gap._replace(activity=root.key) for gap in source.gaps), *record.gaps],
    )


def _load(graph: Graph, found: ExecutionRef, looks: bool) -> ExecutionRecord:
    connection = graph.connection
    activities = {
        row[0]: Activity._make(
            (
                *row[:6],
                json.loads(row[6]),
                *row[7:13],
                json.loads(row[13]),
                json.loads(row[14]),
                json.loads(row[15] or "{}"),
                row[16],
            )
        )
        for row in connection.rows(_ACTIVITIES, (found.key,))
    }
    versions = {
        row[0]: Version._make(
            (
                *row[:4],
                bool(row[4]),
                row[5],
                digest_text(row[6]),
                *row[7:10],
                bool(row[10]),
                row[11],
            )
        )
        for row in connection.rows(_VERSIONS, (found.key,))
    }

    def edges(table: str) -> list[Edge]:
        rows = connection.rows(_EDGES.replace("{}", table), (found.key,))
        return [Edge(*row) for row in rows if row[0] in activities]

    flows: list[tuple[Any, ...]] = connection.rows(_INFORMED, (found.key,))
    return ExecutionRecord(
        execution=found,
        facets={
            **(activities[found.key].facets if found.key in activities else {}),
            **load_learnt_facets(graph, found.key),
        },
        activities=activities,
        versions=versions,
        used=edges("used"),
        generated=edges("generated"),
        invalidated=edges("invalidated"),
        looked=_load_looks(graph, found.key) if looks else [],
        informed=[(a, b, at, via) for a, b, at, via in flows if b in activities],
        gaps=[Gap(*row) for row in connection.rows(_GAPS, (found.key,))],
    )


def _load_looks(graph: Graph, execution: int) -> list[Look]:
    rows = [
        (Look(*row[:5]), list(unpack_looks(row[5])) if row[5] else [])
        for row in graph.connection.rows(_LOOKED, (execution,))
    ]
    places = {location for _, others in rows for _, location, _ in others}
    locators: dict[int, Locator] = dict(graph.connection.rows_in(_LOCATIONS, places))
    looks: list[Look] = []
    for first, others in rows:
        looks.append(first)
        looks += [
            Look(first.activity, locators[location], kind, first.at, answer)
            for kind, location, answer in others
        ]
    return looks


_HEIRS = """
SELECT DISTINCT x.uid, x.number FROM started w JOIN informed i ON i.source = w.id
JOIN started s ON s.id = i.activity JOIN execution x ON x.id = s.execution
JOIN execution wx ON wx.id = w.execution
WHERE w.execution = ? AND i.via = 'fork' AND s.execution <> w.execution
AND (x.made_elsewhere = 0 OR wx.made_elsewhere <> 0) ORDER BY x.number
"""
"""A record made elsewhere cannot claim to inherit from one that was recorded here."""


def find_inherited_execution(graph: Graph, uid: Uid) -> Uid | None:
    """The uid of the execution that this one inherits from."""
    facets, _ = load_facets(graph, activity_key(graph.project_uid, uid))
    found: Uid | None = facets.get("inherits")
    return found


def find_inheriting_executions(graph: Graph, uids: Iterable[Uid]) -> list[tuple[Uid, int]]:
    """(uid, number) of those that inherit from one of these, and are none of them."""
    known = set(uids)
    rows = [
        (Uid(uid), int(number))
        for one in sorted(known)
        for uid, number in graph.connection.rows(_HEIRS, (activity_key(graph.project_uid, one),))
    ]
    return [row for row in rows if row[0] not in known]
