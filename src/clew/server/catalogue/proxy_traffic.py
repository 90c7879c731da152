"""The traffic of each proxy target, over all servers that share the database.

Counts are added up and the time of the last activity only increases, so any number of servers may
write in any order. Rows of deleted targets stay; a new target of the same name continues them.
"""

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
_LIST = """
SELECT kind, namespace, name, last_activity, requests, sockets, bytes_in, bytes_out
FROM traffic WHERE project = ? ORDER BY kind, namespace, name
"""


@dataclass(frozen=True)
class Traffic:
    """The usage of one target."""

    kind: str
    namespace: str
    name: str
    last_activity: int
    """The time of the last byte in either direction, in nanoseconds."""
    requests: int = 0
    sockets: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


def add_traffic(graph: Graph, increments: Iterable[Traffic]) -> None:
    """Add the traffic since the last call."""
    rows = [
        (
            graph.project,
            traffic.kind,
            traffic.namespace,
            traffic.name,
            traffic.last_activity,
            traffic.requests,
            traffic.sockets,
            traffic.bytes_in,
            traffic.bytes_out,
        )
        for traffic in sorted(
            increments, key=lambda traffic: (traffic.kind, traffic.namespace, traffic.name)
        )
    ]
    graph.connection.atomically(lambda: graph.connection.insert(_ADD, rows))


def list_traffic(graph: Graph) -> list[Traffic]:
    return [Traffic(*row) for row in graph.connection.rows(_LIST, (graph.project,))]
