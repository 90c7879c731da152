"""The contents that executions name, which garbage collection must keep."""

from clew.prov.graph import Graph
from clew.prov.row_keys import digest_text

_DIGESTS = """
SELECT DISTINCT c.digest FROM execution x JOIN version v ON v.execution = x.id
JOIN content c ON c.version = v.id WHERE x.project = ? AND c.stored = 1
"""
_LISTINGS = """
SELECT DISTINCT l.answer FROM execution x JOIN started s ON s.execution = x.id
JOIN looked l ON l.activity = s.id WHERE x.project = ? AND l.kind = 'listing' AND l.answer <> ''
"""
_SIGNED = """
SELECT DISTINCT g.events FROM execution x JOIN signature g ON g.execution = x.id WHERE x.project = ?
"""


def list_live_digests(graph: Graph, execution: int | None = None) -> set[str]:
    """The digests that the project's executions (or the one with this key) name as stored: of
    versions, of directory listings, and of signed events."""
    condition = "" if execution is None else " AND x.id = ?"
    about = (graph.project,) if execution is None else (graph.project, execution)
    found = graph.connection.rows(_DIGESTS + condition, about)
    named = {text for (stored,) in found if (text := digest_text(stored)) is not None}
    for query in (_LISTINGS, _SIGNED):
        named |= {str(answer) for (answer,) in graph.connection.rows(query + condition, about)}
    return named
