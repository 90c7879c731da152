"""The ids of revoked sessions and used login tickets, until they expire."""

from clew.prov.graph import Graph

_ADD = """
INSERT INTO revoked (project, id, expires) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id
"""
_LIST = "SELECT id FROM revoked WHERE project = ? AND expires > ?"
_DELETE_EXPIRED = "DELETE FROM revoked WHERE project = ? AND expires <= ?"


def revoke(graph: Graph, id: str, expires: int, *, now: int) -> bool:  # noqa: A002
    """Revoke an id; false if this or another server has revoked it before."""
    graph.connection.rows(_DELETE_EXPIRED, (graph.project, now))
    return graph.connection.row(_ADD, (graph.project, id, expires)) is not None


def list_revoked(graph: Graph, *, now: int) -> frozenset[str]:
    return frozenset(row[0] for row in graph.connection.rows(_LIST, (graph.project, now)))
