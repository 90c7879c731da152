"""Check what a record from another party adds to the graph.

A pulled or sent record is untrusted. It may describe the execution it belongs to: the execution
itself, the activities that it started, and the versions that these found or made. Other
executions may be referred to (the parent of a repeat, the sender of data), never described.
Nothing in the graph is changed: known rows are skipped, and a contradicting row rejects the whole
record. `Graph.fold`, for this project's own recorder, has
other rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from clew.documents.ids import ExecutionId, Uid
from clew.errors import Rejected
from clew.prov import tables
from clew.prov.cluster.activity_uids import CLUSTER_KINDS
from clew.prov.events import Alias, AnyEvent, Content, Generated, Invalidated, Started, Used
from clew.prov.fold import Row, Rows
from clew.prov.queries.formats import execution_id
from clew.prov.row_keys import activity_key

if TYPE_CHECKING:
    from clew.prov.graph import Graph

_EXECUTION_UID = re.compile(r"[0-9a-f]{32}")
_VERSIONED = (Used, Generated, Invalidated, Content)
_OWN_ACTIVITY = "SELECT 1 FROM started WHERE id = ? AND execution = ? AND uid = ?"
_KNOWN = """
SELECT uid, number, made_elsewhere, EXISTS (SELECT 1 FROM ended e WHERE e.activity = execution.id)
FROM execution WHERE id = ?
"""
_IS_RUN = "SELECT 1 FROM run WHERE id = ?"
_PARENT_OF = "SELECT parent FROM started WHERE id = ?"
_CLAIMED = "SELECT x.number FROM started s JOIN execution x ON x.id = s.execution WHERE s.id = ?"
_FOREIGN_FACTS = """
SELECT DISTINCT x.number, vx.number FROM {table} f JOIN started s ON s.id = f.activity
JOIN execution x ON x.id = s.execution JOIN version v ON v.id = f.version
JOIN execution vx ON vx.id = v.execution WHERE x.project = ? AND v.execution <> s.execution
"""
_FOREIGN_MAKERS = """
SELECT DISTINCT vx.number, x.number FROM version v JOIN execution vx ON vx.id = v.execution
JOIN started s ON s.id = v.maker JOIN execution x ON x.id = s.execution
WHERE vx.project = ? AND s.execution <> v.execution
"""
_ENDS = """
SELECT x.number FROM ended e JOIN execution x ON x.id = e.activity
WHERE x.project = ? AND e.status IS NOT NULL
GROUP BY x.number HAVING count(DISTINCT e.status) > 1
"""
_PARENT, _AT = tables.COLUMNS["started"].index("parent"), tables.COLUMNS["version"].index("at")
_HINT = "nothing of this record was imported"


def is_execution_uid(uid: str) -> bool:
    return _EXECUTION_UID.fullmatch(uid) is not None


def check_scope(graph: Graph, uid: Uid, events: Iterable[AnyEvent]) -> None:
    """Reject events that describe anything but the execution `uid` and what belongs to it."""
    if not is_execution_uid(uid):
        raise Rejected(f"{uid[:80]!r} is not the uid of an execution", hint=_HINT)
    events = list(events)
    scope = {uid}
    for event in events:
        if isinstance(event, Started) and event.activity != uid:
            if is_execution_uid(event.activity) or "\0" in event.activity:
                raise _out_of_scope_error(uid, event, event.activity)
            scope.add(event.activity)
        if isinstance(event, Started) and event.kind in ("run", "task"):
            raise Rejected(
                f"{uid[:8]} is of a pipeline run, and only executions are imported", hint=_HINT
            )
        if isinstance(event, Started) and event.kind in CLUSTER_KINDS:
            raise Rejected(
                f"{uid[:8]} is a {event.kind} of a cluster, which only its agents describe",
                hint=_HINT,
            )
    key = activity_key(graph.project_uid, uid)
    for event in events:
        about = [] if isinstance(event, Alias | Content) else [event.activity]
        if isinstance(event, _VERSIONED):
            about.append(event.version.maker)
        for activity in about:
            if activity not in scope:
                known = (activity_key(graph.project_uid, activity), key, activity)
                if graph.connection.row(_OWN_ACTIVITY, known) is None:
                    raise _out_of_scope_error(uid, event, activity)
                scope.add(activity)


def _out_of_scope_error(uid: Uid, event: AnyEvent, activity: Uid) -> Rejected:
    kind = type(event).__name__.lower()
    return Rejected(
        f"the record of {uid[:8]} describes {activity[:80]!r}, which does not belong to"
        f" that execution (event {event.n}, {kind})",
        hint=_HINT,
    )


def find_new_rows(graph: Graph, uid: Uid, rows: Rows) -> dict[str, list[Row]]:
    """The rows of the execution `uid` that are not in the graph yet.

    Rejects the record if one contradicts what is there, or adds to an execution that was recorded
    here or has ended. To be called within the transaction that inserts them.
    """
    key = activity_key(graph.project_uid, uid)
    known = graph.connection.row(_KNOWN, (key,))
    if (known is not None and known[0] != uid) or graph.connection.row(_IS_RUN, (key,)):
        raise Rejected(f"the id of {uid[:8]} is that of another execution or run here", hint=_HINT)
    closed = known is not None and (known[2] != tables.IMPORTED or bool(known[3]))
    new = {
        table: _find_new(graph, uid, table, found, closed=closed and table != "location")
        for table, found in rows.tables().items()
    }
    _check_parents(graph, uid, {row[0]: row[_PARENT] for row in new["started"]})
    return new


def _check_parents(graph: Graph, uid: Uid, parents: dict[int, int | None]) -> None:
    """Reject an activity that descends from itself, also by way of what is in the graph: code that
    walks up or down the processes would not end."""
    ends: set[int] = set()  # activities whose line of ancestors ends
    for start in list(parents):
        line: set[int] = set()
        here: int | None = start
        while here is not None and here not in ends:
            if here in line:
                raise Rejected(
                    f"the record of {uid[:8]} is malformed: a process is its own ancestor",
                    hint=_HINT,
                )
            line.add(here)
            if here not in parents:
                found = graph.connection.row(_PARENT_OF, (here,))
                parents[here] = found[0] if found else None
            here = parents[here]
        ends |= line


def _find_new(graph: Graph, uid: Uid, table: str, rows: list[Row], *, closed: bool) -> list[Row]:
    width = tables.KEYS[table]
    known = {row[:width]: row for row in select_rows(graph, table, {row[0] for row in rows})}
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
                raise _contradiction_error(graph, uid, table, row)
            fresh[row[:width]] = row
        if not rows_agree(table, there, row):
            raise _contradiction_error(graph, uid, table, row)
    return list(fresh.values())


def select_rows(graph: Graph, table: str, keys: set[int]) -> list[Row]:
    """The rows of a table whose first column is one of these."""
    columns = tables.COLUMNS[table]
    return [
        tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
        for row in graph.connection.rows_in(
            f"SELECT {', '.join(columns)} FROM {table} WHERE {columns[0]} IN ({{}})",  # noqa: S608
            keys,
        )
    ]


def rows_agree(table: str, known: Row, row: Row) -> bool:
    """Whether two rows of one key say the same.

    A version is as old as the earliest event about it. An export of a repeat without the
    execution that it repeats cannot name its parent.
    """
    if table == "version":
        return known[:_AT] == row[:_AT]
    if table == "started" and None in (known[_PARENT], row[_PARENT]):
        known, row = (r[:_PARENT] + r[_PARENT + 1 :] for r in (known, row))
    return known == row


def _contradiction_error(graph: Graph, uid: Uid, table: str, row: Row) -> Rejected:
    hint = _HINT
    if table == "started" and (found := graph.connection.row(_CLAIMED, (row[0],))):
        holder = execution_id(found[0])
        hint = f"{holder} has it; if that one is forged, clew rm {holder}"
    what = repr(row[tables.COLUMNS["started"].index("uid")]) if table == "started" else table
    return Rejected(
        f"the record of {uid[:8]} contradicts what is known here ({what[:100]})", hint=hint
    )


def find_facts_out_of_scope(graph: Graph) -> Iterator[tuple[str, str]]:
    """(what, where) of facts that no import would add now; older versions of Clew did.

    Content that such a record added to a version of another execution cannot be recognised.
    """
    rows = graph.connection.rows
    for table in ("used", "generated", "invalidated"):
        question = _FOREIGN_FACTS.replace("{table}", table)
        for number, other in map(_execution_ids, rows(question, (graph.project,))):
            yield f"it says something about a version of {other} ({table})", number
    for number, other in map(_execution_ids, rows(_FOREIGN_MAKERS, (graph.project,))):
        yield f"it says that a process of {other} made one of its versions", number
    for (number,) in map(_execution_ids, rows(_ENDS, (graph.project,))):
        yield "it ended with several statuses", number


def _execution_ids(row: Row) -> list[ExecutionId]:
    return [execution_id(number) for number in row]
