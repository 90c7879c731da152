"""Executions that were forked by the command of another one, and inherit what it read."""

from collections.abc import Iterable

from clew.prov.graph import Graph
from clew.prov.queries.show import load_facets
from clew.prov.row_keys import activity_key

_HEIRS = """
SELECT DISTINCT x.uid, x.number FROM started w JOIN informed i ON i.source = w.id
JOIN started s ON s.id = i.activity JOIN execution x ON x.id = s.execution
JOIN execution wx ON wx.id = w.execution
WHERE w.execution = ? AND i.via = 'fork' AND s.execution <> w.execution
AND (x.made_elsewhere = 0 OR wx.made_elsewhere <> 0) ORDER BY x.number
"""
"""A record made elsewhere cannot claim to inherit from one that was recorded here."""


def find_inherited_execution(graph: Graph, uid: str) -> str | None:
    """The uid of the execution that this one inherits from."""
    facets, _ = load_facets(graph, activity_key(graph.project_uid, uid))
    found: str | None = facets.get("inherits")
    return found


def find_inheriting_executions(graph: Graph, uids: Iterable[str]) -> list[tuple[str, int]]:
    """(uid, number) of those that inherit from one of these, and are none of them."""
    known = set(uids)
    rows = [
        (str(uid), int(number))
        for one in sorted(known)
        for uid, number in graph.connection.rows(_HEIRS, (activity_key(graph.project_uid, one),))
    ]
    return [row for row in rows if row[0] not in known]
