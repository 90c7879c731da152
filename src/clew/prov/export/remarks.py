"""What people noted about an execution, its processes and its versions, as it travels.

Notes are no events: nobody witnessed them. They are told by what they stand on (uids, locators,
digests), and taken in where that is known by the same words; the same note twice is one.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from clew.prov.events import Uid, Version
from clew.prov.graph import Graph
from clew.prov.keys import (
    activity_key,
    beside,
    digest_bytes,
    digest_text,
    keyer,
    location_key,
    version_name,
)
from clew.prov.questions.executions import Found

_COLUMNS = "n.at, n.agent, n.name, n.value, n.activity, n.version, n.location, n.digest"
_ON_ACTIVITIES = f"""
SELECT {_COLUMNS} FROM note n
WHERE n.activity = ? OR n.activity IN (SELECT id FROM started WHERE execution = ?)
"""  # noqa: S608
_ON_FILES = f"""
SELECT DISTINCT {_COLUMNS} FROM version v JOIN note n ON n.location = v.location
LEFT JOIN content c ON c.version = v.id
WHERE v.execution = ? AND (n.version = v.id OR n.digest = c.digest)
"""  # noqa: S608
_ACTIVITY = "SELECT uid FROM started WHERE id = ?"
_VERSION = """
SELECT l.locator, s.uid, x.uid, v.ordinal FROM version v JOIN location l ON l.id = v.location
LEFT JOIN started s ON s.id = v.maker LEFT JOIN execution x ON x.id = v.maker WHERE v.id = ?
"""
_LOCATOR = "SELECT locator FROM location WHERE id = ?"
_SAME = """
SELECT activity, version, location FROM note
WHERE project = ? AND at = ? AND agent = ? AND name = ? AND value = ?
"""
_ADD = """
INSERT INTO note (id, project, activity, version, location, digest, at, agent, name, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_PLACE = "INSERT INTO location (id, project, locator) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


class Remark(msgspec.Struct, frozen=True, omit_defaults=True):
    """One note, in words that mean the same in every project."""

    at: int
    agent: str
    name: str
    value: str
    activity: Uid | None = None
    version: Version | None = None
    locator: str | None = None
    digest: str | None = None


def remarks_of(graph: Graph, found: Found) -> list[Remark]:
    """What was noted of the execution and its processes, and of the versions it met."""
    connection = graph.connection
    rows = connection.rows(_ON_ACTIVITIES, (found.key, found.key))
    rows += connection.rows(_ON_FILES, (found.key,))

    def told(at: int, agent: str, name: str, value: str, *on: object) -> Remark:
        activity, version, location, digest = on
        uid = place = None
        if activity is not None:
            row = connection.one(_ACTIVITY, (activity,))
            uid = found.uid if row is None else str(row[0])
        if location is not None:
            place = str(connection.rows(_LOCATOR, (location,))[0][0])
        content = digest_text(bytes(digest)) if isinstance(digest, (bytes, memoryview)) else None
        return Remark(at, agent, name, value, uid, _version(graph, version), place, content)

    return sorted((told(*row) for row in rows), key=lambda remark: (remark.at, str(remark)))


def _version(graph: Graph, key: object) -> Version | None:
    row = None if key is None else graph.connection.one(_VERSION, (key,))
    if row is None:
        return None
    locator, process, execution, ordinal = row
    maker = process or execution
    return None if maker is None else Version(locator, maker, ordinal)


def take(graph: Graph, remarks: Iterable[Remark]) -> int:
    """Add those that are not here yet; how many. To be called within a transaction."""
    connection, project = graph.connection, graph.project_uid
    added = 0
    for remark in remarks:
        at, agent, name, value, uid, version, locator, digest = msgspec.structs.astuple(remark)
        activity = None if uid is None else activity_key(project, uid)
        location = None if locator is None else location_key(project, locator)
        on = None if version is None else _version_key(project, version)
        same = connection.rows(_SAME, (graph.project, at, agent, name, value))
        if (activity, on, location) in same:
            continue
        if location is not None:
            connection.rows(_PLACE, (location, graph.project, locator))
        key = keyer(project, "note")(f"{uid} {version} {locator} {at} {name} {value}")
        bytes_ = None if digest is None else digest_bytes(digest)
        row = (key, graph.project, activity, on, location, bytes_, at, agent, name, value)
        connection.rows(_ADD, row)
        added += 1
    return added


def _version_key(project: str, version: Version) -> int:
    name = version_name(version.locator, version.maker, version.ordinal)
    return beside(activity_key(project, version.maker), keyer(project, "version")(name))
