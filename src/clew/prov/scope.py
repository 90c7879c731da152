"""What a record from another party may add to the graph.

A pulled or sent record is untrusted. It may describe the execution it belongs to: the execution
itself, the activities that it started, and the versions that these found or made. Other
executions may be referred to (the parent of a repeat, the sender of data), never described.
Nothing that is already in the graph is changed: a fact that is there is skipped, and one that
contradicts it rejects the whole record. `Graph.fold`, for this project's own recorder, has
other rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from clew.errors import Rejected
from clew.prov import tables
from clew.prov.events import AnyEvent, Content, Generated, Invalidated, Started, Used
from clew.prov.fold import Row, Rows
from clew.prov.keys import activity_key

if TYPE_CHECKING:
    from clew.prov.graph import Graph

_EXECUTION_UID = re.compile(r"[0-9a-f]{32}")
_VERSIONED = (Used, Generated, Invalidated, Content)
_OWN_ACTIVITY = "SELECT 1 FROM started WHERE id = ? AND execution = ? AND uid = ?"
_KNOWN = """
SELECT uid, number, made_elsewhere, EXISTS (SELECT 1 FROM ended e WHERE e.activity = execution.id)
FROM execution WHERE id = ?
"""
_CLAIMED = "SELECT x.number FROM started s JOIN execution x ON x.id = s.execution WHERE s.id = ?"
_PARENT, _AT = tables.COLUMNS["started"].index("parent"), tables.COLUMNS["version"].index("at")
_HINT = "nothing of this record was imported"


def check_scope(graph: Graph, uid: str, events: Iterable[AnyEvent]) -> None:
    """Reject events that describe anything but the execution `uid` and what belongs to it."""
    events = list(events)
    scope = {uid}
    for event in events:
        if isinstance(event, Started) and event.activity != uid:
            if _EXECUTION_UID.fullmatch(event.activity) or "\0" in event.activity:
                raise _outside(uid, event, event.activity)
            scope.add(event.activity)
        if isinstance(event, Started) and event.kind == "run":
            raise Rejected(f"{uid[:8]} is a pipeline run, and only executions are imported")
    key = activity_key(graph.project_uid, uid)
    for event in events:
        about = [activity] if (activity := getattr(event, "activity", None)) else []
        if isinstance(event, _VERSIONED):
            about.append(event.version.maker)
        for activity in about:
            if activity not in scope:
                known = (activity_key(graph.project_uid, activity), key, activity)
                if graph.connection.one(_OWN_ACTIVITY, known) is None:
                    raise _outside(uid, event, activity)
                scope.add(activity)


def _outside(uid: str, event: AnyEvent, activity: str) -> Rejected:
    kind = type(event).__name__.lower()
    return Rejected(
        f"the record of {uid[:8]} says something about {activity[:80]!r}, which is no part of"
        f" that execution (event {event.n}, {kind})",
        hint=_HINT,
    )


def new_rows(graph: Graph, uid: str, rows: Rows) -> dict[str, list[Row]]:
    """The rows of the execution `uid` that are not in the graph yet.

    Rejects the record if one contradicts what is there, or adds to an execution that was recorded
    here or has ended. To be called within the transaction that inserts them.
    """
    key = activity_key(graph.project_uid, uid)
    known = graph.connection.one(_KNOWN, (key,))
    if known is not None and known[0] != uid:
        raise Rejected(f"the id of {uid[:8]} is that of another execution here", hint=_HINT)
    closed = known is not None and (known[2] != tables.IMPORTED or bool(known[3]))
    return {
        table: _new(graph, uid, table, found, closed=closed and table != "location")
        for table, found in rows.tables().items()
    }


def _new(graph: Graph, uid: str, table: str, rows: list[Row], *, closed: bool) -> list[Row]:
    width = tables.KEYS[table]
    known = {row[:width]: row for row in _existing(graph, table, {row[0] for row in rows})}
    fresh: dict[Row, Row] = {}
    for row in rows:
        there = known.get(row[:width])
        if there is None:
            if closed:
                raise Rejected(
                    f"the execution {uid[:8]} is complete here, and the record adds to it"
                    f" ({table})",
                    hint=_HINT,
                )
            there = fresh.setdefault(row[:width], row)
        elif table == "version" and there[:_AT] == row[:_AT] and row[_AT] < there[_AT]:
            if closed:
                raise _contradiction(graph, uid, table, row)
            fresh[row[:width]] = row
        if not _agree(table, there, row):
            raise _contradiction(graph, uid, table, row)
    return list(fresh.values())


def _existing(graph: Graph, table: str, keys: set[int]) -> list[Row]:
    columns = tables.COLUMNS[table]
    return [
        tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
        for row in graph.connection.among(
            f"SELECT {', '.join(columns)} FROM {table} WHERE {columns[0]} IN ({{}})",  # noqa: S608
            keys,
        )
    ]


def _agree(table: str, known: Row, row: Row) -> bool:
    """Whether two rows of one key say the same.

    A version is as old as the earliest event about it. Whoever exports a repeat without the
    execution that it repeats cannot name its parent.
    """
    if table == "version":
        return known[:_AT] == row[:_AT]
    if table == "started" and None in (known[_PARENT], row[_PARENT]):
        known, row = (r[:_PARENT] + r[_PARENT + 1 :] for r in (known, row))
    return known == row


def _contradiction(graph: Graph, uid: str, table: str, row: Row) -> Rejected:
    hint = _HINT
    if table == "started" and (found := graph.connection.one(_CLAIMED, (row[0],))):
        hint = f"e{found[0]} has it; if that one is forged, clew rm e{found[0]}"
    what = repr(row[tables.COLUMNS["started"].index("uid")]) if table == "started" else table
    return Rejected(
        f"the record of {uid[:8]} contradicts what is known here ({what[:100]})", hint=hint
    )
