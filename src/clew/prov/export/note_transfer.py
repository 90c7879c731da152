"""Export and import the notes about an execution, its processes and its versions.

Notes are written by users, so they are not events. They are transferred with an execution and refer
to their subject by uid, locator and digest. An import accepts only notes about the execution
itself, its processes and the versions it used or made. Duplicates are dropped.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Annotated

import msgspec

from clew.documents.ids import Digest, Locator, Uid
from clew.prov.events import Version
from clew.prov.graph import Graph
from clew.prov.queries.executions import ExecutionRef
from clew.prov.row_keys import (
    activity_key,
    digest_bytes,
    digest_text,
    key_function,
    location_key,
    version_name,
    with_maker_prefix,
)

_COLUMNS = "n.at, n.agent, n.name, n.value, n.activity, n.version, n.location, n.digest"
_ON_ACTIVITIES = f"""
SELECT {_COLUMNS} FROM note n
WHERE n.activity = ? OR n.activity IN (SELECT id FROM started WHERE execution = ?)
"""  # noqa: S608
_ON_FILES = f"""
SELECT DISTINCT {_COLUMNS} FROM version v JOIN note n ON n.location = v.location
LEFT JOIN content c ON c.version = v.id
WHERE v.execution = ? AND (n.version = v.id OR n.digest = c.digest)
AND (n.execution IS NULL OR n.execution = v.execution)
"""  # noqa: S608
_ACTIVITY = "SELECT uid FROM started WHERE id = ?"
_VERSION = """
SELECT l.locator, s.uid, x.uid, v.ordinal FROM version v JOIN location l ON l.id = v.location
LEFT JOIN started s ON s.id = v.maker LEFT JOIN execution x ON x.id = v.maker WHERE v.id = ?
"""
_LOCATOR = "SELECT locator FROM location WHERE id = ?"
_KNOWN = "SELECT activity, location, at, agent, name, value FROM note WHERE {column} IN ({})"
_ADD = """
INSERT INTO note
(id, project, activity, version, location, digest, at, agent, name, value, execution)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_OWN_ACTIVITY = "SELECT 1 FROM started WHERE id = ? AND execution = ?"
_ACCESSED = """
SELECT v.id, c.digest FROM version v LEFT JOIN content c ON c.version = v.id
WHERE v.execution = ? AND v.location = ?
"""
MOST, LONGEST = 10_000, 100_000
"""For one execution: how many notes of another party are taken, and how long each may be."""
_END_OF_TIME = 2**62


class PortableNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """One note, in words that mean the same in every project."""

    at: Annotated[int, msgspec.Meta(ge=0, le=_END_OF_TIME)]
    agent: str
    name: str
    value: str
    activity: Uid | None = None
    version: Version | None = None
    locator: Locator | None = None
    digest: Digest | None = None


def export_notes(graph: Graph, found: ExecutionRef) -> list[PortableNote]:
    """The notes on the execution, its processes and its versions."""
    connection = graph.connection
    rows = connection.rows(_ON_ACTIVITIES, (found.key, found.key))
    rows += connection.rows(_ON_FILES, (found.key,))

    def to_note(at: int, agent: str, name: str, value: str, *on: object) -> PortableNote:
        activity, version, location, digest = on
        uid = locator = None
        if activity is not None:
            row = connection.row(_ACTIVITY, (activity,))
            uid = found.uid if row is None else Uid(row[0])
        if location is not None:
            locator = Locator(connection.rows(_LOCATOR, (location,))[0][0])
        content = digest_text(bytes(digest)) if isinstance(digest, (bytes, memoryview)) else None
        return PortableNote(at, agent, name, value, uid, _version(graph, version), locator, content)

    return sorted((to_note(*row) for row in rows), key=lambda remark: (remark.at, str(remark)))


def _version(graph: Graph, key: object) -> Version | None:
    row = None if key is None else graph.connection.row(_VERSION, (key,))
    if row is None:
        return None
    locator, process, execution, ordinal = row
    maker = process or execution
    return None if maker is None else Version(locator, maker, ordinal)


def import_notes(graph: Graph, uid: Uid, remarks: Iterable[PortableNote]) -> int:
    """Add the new notes about the execution `uid`, and return their number.

    Requires a transaction.
    """
    connection, project = graph.connection, graph.project_uid
    execution = activity_key(project, uid)
    found = [
        (remark, about)
        for remark in islice(remarks, MOST)
        if _is_storable(remark) and (about := _resolve_subject(graph, execution, remark))
    ]
    known = {
        row
        for column, place in (("activity", 0), ("location", 2))
        for row in connection.rows_in(
            _KNOWN.replace("{column}", column),
            {about[place] for _, about in found if about[place] is not None},
        )
    }
    added = 0
    for remark, (activity, version, location) in found:
        values = (remark.at, remark.agent, remark.name, remark.value)
        if (activity, location, *values) in known:
            continue
        known.add((activity, location, *values))
        words = f"{remark.activity} {remark.version} {remark.locator}"
        key = key_function(project, "note")(
            f"{uid} {words} {remark.at} {remark.name} {remark.value}"
        )
        digest = None if remark.digest is None else digest_bytes(remark.digest)
        row = (key, graph.project, activity, version, location, digest, *values, execution)
        connection.rows(_ADD, row)
        added += 1
    return added


def _is_storable(remark: PortableNote) -> bool:
    """Whether its texts are short enough, and text that every database can store."""
    try:
        encoded = msgspec.json.encode(remark)
    except UnicodeEncodeError:
        return False
    texts = (remark.agent, remark.name, remark.value)
    return max(map(len, texts)) <= LONGEST and b"\\u0000" not in encoded


def _resolve_subject(
    graph: Graph, execution: int, remark: PortableNote
) -> tuple[int | None, int | None, int | None] | None:
    """(activity, version, location) of the note; None if it is not about the execution."""
    project = graph.project_uid
    if remark.activity is not None:
        key = activity_key(project, remark.activity)
        own = key == execution or graph.connection.row(_OWN_ACTIVITY, (key, execution))
        return (key, None, None) if own and remark.locator is None else None
    if remark.locator is None:
        return None
    location = location_key(project, remark.locator)
    version = None if remark.version is None else _version_key(project, remark.version)
    digest = None if remark.digest is None else digest_bytes(remark.digest)
    accessed = graph.connection.rows(_ACCESSED, (execution, location))
    if version in {key for key, _ in accessed}:
        return None, version, location
    if digest is not None and digest in {
        bytes(known) for _, known in accessed if known is not None
    }:
        return (
            None,
            None,
            location,
        )  # a note on the same bytes, which another execution accessed as well
    return None


def _version_key(project: Uid, version: Version) -> int:
    name = version_name(version.locator, version.maker, version.ordinal)
    return with_maker_prefix(
        activity_key(project, version.maker), key_function(project, "version")(name)
    )
