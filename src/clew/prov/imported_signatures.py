"""Signatures of imported executions: kept with the record, and checked against it."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clew.documents.ids import Digest, Uid
from clew.errors import Rejected
from clew.prov import tables
from clew.prov.events import AnyEvent
from clew.prov.fold import Row, Rows
from clew.prov.graph import Graph
from clew.prov.import_scope import rows_agree, select_rows
from clew.prov.row_keys import activity_key

_ADD = """
INSERT INTO signature (execution, key, events, signature) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
_OF = "SELECT key, events, signature FROM signature WHERE execution = ? ORDER BY key"
_ALL = """
SELECT x.uid, x.number, g.key, g.events, g.signature FROM signature g
JOIN execution x ON x.id = g.execution WHERE x.project = ? ORDER BY x.number, g.key
"""
_ACTIVITIES = "SELECT id FROM started WHERE execution = ?"
_VERSIONS = "SELECT id FROM version WHERE execution = ?"
_LOCATOR = "SELECT l.locator FROM version v JOIN location l ON l.id = v.location WHERE v.id = ?"


class Signature(NamedTuple):
    """A valid signature of one execution's record."""

    key: str
    """The fingerprint of the key."""
    events: Digest
    """The digest of the events that were signed."""
    signature: str


def add_signatures(
    graph: Graph, uid: Uid, signatures: Iterable[Signature], events: Iterable[AnyEvent]
) -> None:
    """Keep signatures of these events, which must be all that is known of the execution.

    To be called within a transaction.
    """
    for signature in signatures:
        for what, _ in find_unsigned_changes(graph, uid, events):
            raise Rejected(
                f"what is known here of {uid[:8]} is not what was signed: {what}",
                hint=f"clew rm {uid}, then pull it again",
            )
        graph.connection.rows(_ADD, (activity_key(graph.project_uid, uid), *signature))


def list_signatures(graph: Graph, uid: Uid) -> list[Signature]:
    rows = graph.connection.rows(_OF, (activity_key(graph.project_uid, uid),))
    return [Signature(*row) for row in rows]


def list_all_signatures(graph: Graph) -> list[tuple[Uid, int, Signature]]:
    """(uid, number, signature) of every signed execution."""
    rows = graph.connection.rows(_ALL, (graph.project,))
    return [(Uid(uid), int(number), Signature(*rest)) for uid, number, *rest in rows]


def find_unsigned_changes(
    graph: Graph, uid: Uid, events: Iterable[AnyEvent]
) -> Iterator[tuple[str, str]]:
    """(what, where) of each difference between the rows of the execution and the signed events."""
    rows = Rows(graph.project_uid)
    rows.add(events)
    signed = rows.tables()
    key = activity_key(graph.project_uid, uid)
    activities = {key, *(row[0] for row in graph.connection.rows(_ACTIVITIES, (key,)))}
    versions = {row[0] for row in graph.connection.rows(_VERSIONS, (key,))}
    keys = {"version": versions, "content": versions, "alias": {key}}
    for table, width in tables.KEYS.items():
        if table == "location":
            continue
        expected = {row[:width]: row for row in signed[table]}
        stored = select_rows(graph, table, keys.get(table, activities))
        actual = {row[:width]: row for row in stored}
        for key_columns in sorted(expected.keys() | actual.keys()):
            here, there = actual.get(key_columns), expected.get(key_columns)
            if here is None:
                yield f"a row is missing ({table})", _where(graph, table, there)
            elif there is None:
                yield f"a row was added ({table})", _where(graph, table, here)
            elif not rows_agree(table, here, there) or (table == "version" and here != there):
                yield f"a row was changed ({table})", _where(graph, table, here)


def _where(graph: Graph, table: str, row: Row | None) -> str:
    """The locator of a version; for other rows, the number of their event."""
    if row is None:
        return ""
    if table in ("content", "version"):
        found = graph.connection.row(_LOCATOR, (row[0],))
        return str(found[0]) if found else ""
    return f"event {row[tables.COLUMNS[table].index('n')]}"
