"""Ids of sessions that were ended, and of login tickets that were used, until they expire."""

from __future__ import annotations

from clew.prov.graph import Graph

_ADD = """
INSERT INTO revoked (project, id, expires) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id
"""
_EVERY = "SELECT id FROM revoked WHERE project = ? AND expires > ?"
_FORGET = "DELETE FROM revoked WHERE project = ? AND expires <= ?"


def revoke(graph: Graph, id: str, expires: int, *, now: int) -> bool:  # noqa: A002
    """Revoke an id; False: it was revoked before, by this server or another."""
    graph.connection.rows(_FORGET, (graph.project, now))
    return graph.connection.one(_ADD, (graph.project, id, expires)) is not None


def list_revoked(graph: Graph, *, now: int) -> frozenset[str]:
    return frozenset(row[0] for row in graph.connection.rows(_EVERY, (graph.project, now)))
