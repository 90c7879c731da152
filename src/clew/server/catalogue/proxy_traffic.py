"""What passed through the proxies of all servers, for each target: they share one database.

Numbers are added, the time of the last activity only moves on: so any number of servers may
write, in any order. What is gone stays here: nobody asks for it, and a target that is made later by
its name goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clew.prov.graph import Graph

_ADD = """
INSERT INTO traffic (project, kind, namespace, name, last_activity, requests, sockets,
  bytes_in, bytes_out)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (project, kind, namespace, name) DO UPDATE SET
  last_activity = CASE WHEN excluded.last_activity > traffic.last_activity
    THEN excluded.last_activity ELSE traffic.last_activity END,
  requests = traffic.requests + excluded.requests,
  sockets = traffic.sockets + excluded.sockets,
  bytes_in = traffic.bytes_in + excluded.bytes_in,
  bytes_out = traffic.bytes_out + excluded.bytes_out
"""
_EVERY = """
SELECT kind, namespace, name, last_activity, requests, sockets, bytes_in, bytes_out
FROM traffic WHERE project = ? ORDER BY kind, namespace, name
"""


@dataclass(frozen=True)
class Traffic:
    """What one target was used for."""

    kind: str
    namespace: str
    name: str
    last_activity: int
    """When a byte last went either way, in nanoseconds."""
    requests: int = 0
    sockets: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


def add_traffic(graph: Graph, news: Iterable[Traffic]) -> None:
    """What passed since it was added last."""
    rows = [
        (
            graph.project,
            one.kind,
            one.namespace,
            one.name,
            one.last_activity,
            one.requests,
            one.sockets,
            one.bytes_in,
            one.bytes_out,
        )
        for one in sorted(news, key=lambda one: (one.kind, one.namespace, one.name))
    ]
    graph.connection.atomically(lambda: graph.connection.insert(_ADD, rows))


def list_traffic(graph: Graph) -> list[Traffic]:
    return [Traffic(*row) for row in graph.connection.rows(_EVERY, (graph.project,))]
