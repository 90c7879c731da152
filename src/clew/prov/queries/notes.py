"""Notes of users on executions, processes and files, such as the source of a file.

A note on a current file refers to its path and digest, so it applies to all versions with these
bytes at this path. Notes are never overwritten: several values of one name are kept in order. An
imported note applies only to the execution it came with.
"""

import time
from collections.abc import Iterable
from typing import Any

from clew.documents.document import from_nanoseconds
from clew.documents.ids import Digest, Locator
from clew.documents.project.notes import Note
from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage_sql import Version
from clew.prov.queries.tags import TAG, UNTAG
from clew.prov.queries.targets import Target
from clew.prov.row_keys import digest_bytes, digest_text, key_function, location_key

SOURCE = "source"
"""The name under which a file's origin is noted."""

_ADD = """
INSERT INTO note (id, project, activity, version, location, digest, at, agent, name, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_PLACE = "INSERT INTO location (id, project, locator) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_SELECT = "SELECT at, agent, name, value, digest, version, location, execution FROM note WHERE "
_ON_ACTIVITY = _SELECT + "activity = ? ORDER BY at, id"
_ON_PLACES = _SELECT + "location IN ({}) ORDER BY at, id"
_FETCHED = "SELECT version, source FROM content WHERE source IS NOT NULL AND version IN ({})"
# What was seen later counts as well: a file may be committed after it was first read.
_SEEN_LATER = """
SELECT o.id, max(c.source) FROM version o JOIN content oc ON oc.version = o.id
JOIN version v ON v.location = o.location AND v.maker = v.execution
JOIN content c ON c.version = v.id AND c.digest = oc.digest AND c.source IS NOT NULL
JOIN execution x ON x.id = v.execution AND x.made_elsewhere = 0
WHERE o.id IN ({}) GROUP BY o.id
"""
_FETCHED_HERE = """
SELECT c.source FROM version AS v JOIN content AS c ON c.version = v.id
JOIN execution AS x ON x.id = v.execution WHERE v.location = ? AND c.digest = ?
AND c.source IS NOT NULL AND x.made_elsewhere = 0 ORDER BY v.at DESC LIMIT 1
"""
_EXECUTIONS = "SELECT DISTINCT execution FROM version WHERE id IN ({})"


def add_note(
    graph: Graph, target: Target, name: str, value: str, *, agent: str, at: int | None = None
) -> None:
    """Store `name` = `value` about the target, with the time `at` (default: now)."""
    at = time.time_ns() if at is None else at
    activity = target.keys[0] if target.kind in ("execution", "process") else None
    one = target.kind == "version" and len(target.keys) == 1
    version = target.keys[0] if one else None
    locator = target.locator if activity is None else None
    location = None if locator is None else location_key(graph.project_uid, locator)
    digest = None if target.digest is None else digest_bytes(target.digest)
    key = key_function(graph.project_uid, "note")(
        f"{target.kind} {target.keys} {locator} {at} {name} {value}"
    )

    def add() -> None:
        if location is not None:
            graph.connection.rows(_PLACE, (location, graph.project, locator))
        graph.connection.rows(
            _ADD,
            (key, graph.project, activity, version, location, digest, at, agent, name, value),
        )

    graph.connection.atomically(add)


def list_notes(graph: Graph, target: Target) -> list[Note]:
    """The notes on the target, in order; tags are none."""
    if target.kind in ("execution", "process"):
        rows = [
            row
            for row in graph.connection.rows(_ON_ACTIVITY, (target.keys[0],))
            if row[2] not in (TAG, UNTAG)
        ]
    else:
        location = location_key(graph.project_uid, target.locator or Locator(""))
        about = {key for (key,) in graph.connection.rows_in(_EXECUTIONS, target.keys)}
        rows = [
            row
            for row in graph.connection.rows_in(_ON_PLACES, [location])
            if _applies(row, target.keys, target.digest, about)
        ]
    return [
        Note(key=name, value=value, at=from_nanoseconds(at), agent=agent)
        for at, agent, name, value, *_ in rows
    ]


def find_sources(graph: Graph, versions: Iterable[Version]) -> dict[int, str]:
    """The origin of each version: what was noted last, of it or of its place and bytes, else what
    was seen when it was fetched."""
    by_place: dict[int, list[Version]] = {}
    for version in versions:
        by_place.setdefault(version.location, []).append(version)
    keys = [version.key for at in by_place.values() for version in at]
    found = [
        version.key
        for at in by_place.values()
        for version in at
        if version.found and not version.locator.startswith("image://")  # where it is from, it says
    ]
    answer: dict[int, str] = dict(graph.connection.rows_in(_SEEN_LATER, found))
    answer.update(graph.connection.rows_in(_FETCHED, keys))
    rows = [row for row in graph.connection.rows_in(_ON_PLACES, by_place) if row[2] == SOURCE]
    for row in sorted(rows, key=lambda row: row[7] is None):  # local notes count most
        for version in by_place[row[6]]:
            if _applies(row, (version.key,), digest_text(version.digest), {version.execution}):
                answer[version.key] = row[3]
    return answer


def find_current_source(graph: Graph, locator: Locator, digest: Digest | None) -> str | None:
    """The origin of a file as it is now: what was noted, else what was seen when it was fetched."""
    location = location_key(graph.project_uid, locator)
    found = [
        row[3]
        for row in graph.connection.rows_in(_ON_PLACES, [location])
        if row[2] == SOURCE and _applies(row, (), digest, set())
    ]
    if not found and digest is not None:
        found = [
            row[0] for row in graph.connection.rows(_FETCHED_HERE, (location, digest_bytes(digest)))
        ]
    return found[-1] if found else None


def _applies(
    row: tuple[Any, ...], keys: tuple[int, ...], digest: Digest | None, executions: set[int]
) -> bool:
    """A note on a version holds for it, and for the same bytes in the same place; one that came
    with an imported execution, for what these executions accessed only if it is among them."""
    if row[7] is not None and row[7] not in executions:
        return False
    if row[5] in keys:
        return True
    return row[4] is not None and digest is not None and bytes(row[4]) == digest_bytes(digest)
