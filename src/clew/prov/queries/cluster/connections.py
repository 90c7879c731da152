"""Which Pods a Pod talked to: a REST dependency is part of its lineage.

A witness of connections knows addresses and the names that clients used. Which Pods were behind
them, directly or through a Service, the audit witness knows (`endpoints`). So that data flowed from
one Pod to the other is inferred; what the other had read by then is behind it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from clew.documents.ids import Locator
from clew.prov.graph import Graph
from clew.prov.queries.cluster.endpoints import ADDRESS, SERVICE, Endpoints
from clew.prov.row_keys import location_key

NETWORK = "network"
"""The `via` of the edge between two containers."""
MAX_CONNECTIONS = 20_000
"""Connections of one step that are resolved, the first ones: a bound on the time this takes."""

_PLACES = f"(substr(l.locator, 1, 5) = '{ADDRESS}' OR substr(l.locator, 1, 10) = '{SERVICE}')"
_CONNECTIONS = f"""
SELECT u.activity, l.locator, u.at FROM used u JOIN version v ON v.id = u.version
JOIN location l ON l.id = v.location
WHERE u.activity IN ({{}}) AND u.how = 'connect' AND {_PLACES}
ORDER BY u.at, 1, 2 LIMIT {MAX_CONNECTIONS}
"""  # noqa: S608
_CONTAINERS = """
SELECT id, execution FROM started WHERE execution IN ({}) AND kind = 'container'
"""
_PODS = "SELECT id, execution FROM started WHERE id IN ({}) AND kind = 'container'"
_NAMES = f"""
SELECT l.locator FROM alias a JOIN location l ON l.id = a.a
WHERE a.execution IN ({{}}) AND {_PLACES}
"""  # noqa: S608
_ADDRESSES = f"""
SELECT l.locator FROM alias a JOIN location l ON l.id = a.a
WHERE a.b IN ({{}}) AND substr(l.locator, 1, 5) = '{ADDRESS}'
"""  # noqa: S608
_CLIENTS = f"""
SELECT u.activity, l.locator, u.at FROM version v JOIN used u ON u.version = v.id
JOIN location l ON l.id = v.location
WHERE v.location IN ({{}}) AND v.maker = v.execution AND u.how = 'connect'
ORDER BY u.at, 1, 2 LIMIT {MAX_CONNECTIONS}
"""  # noqa: S608


class Connection(NamedTuple):
    """Two containers that were connected; data may have flowed from the server to the client."""

    server: int
    client: int
    at: int
    """The first time."""


class Connections(NamedTuple):
    found: list[Connection]
    truncated: bool
    """There were more than are resolved."""


def find_servers(graph: Graph, containers: Iterable[int], endpoints: Endpoints) -> Connections:
    """The containers of Pods that these connected to."""
    rows = graph.connection.rows_in(_CONNECTIONS, containers)
    found = _find_pods(rows, endpoints)
    members: dict[int, list[int]] = {}
    for container, pod in graph.connection.rows_in(_CONTAINERS, {pod for pod, _ in found}):
        members.setdefault(pod, []).append(container)
    return Connections(_join(found, members), len(rows) >= MAX_CONNECTIONS)


def find_clients(graph: Graph, containers: Iterable[int], endpoints: Endpoints) -> Connections:
    """The containers that connected to the Pods of these."""
    members: dict[int, list[int]] = {}
    for container, pod in graph.connection.rows_in(_PODS, containers):
        members.setdefault(pod, []).append(container)
    places = {place for (place,) in graph.connection.rows_in(_NAMES, members)}
    services = _keys(graph, (place for place in places if place.startswith(SERVICE)))
    places |= {place for (place,) in graph.connection.rows_in(_ADDRESSES, services)}
    rows = graph.connection.rows_in(_CLIENTS, _keys(graph, places))
    return Connections(_join(_find_pods(rows, endpoints), members), len(rows) >= MAX_CONNECTIONS)


def _keys(graph: Graph, places: Iterable[Locator]) -> set[int]:
    return {location_key(graph.project_uid, place) for place in places}


def _find_pods(
    rows: list[tuple[int, Locator, int]], endpoints: Endpoints
) -> dict[tuple[int, int], int]:
    """By Pod and client, the first connection."""
    endpoints.load({place for _, place, _ in rows})
    found: dict[tuple[int, int], int] = {}
    for client, place, at in rows:
        for pod in endpoints.pods_at(place, at):
            found[pod, client] = min(at, found.get((pod, client), at))
    return found


def _join(found: dict[tuple[int, int], int], members: dict[int, list[int]]) -> list[Connection]:
    return [
        Connection(container, client, at)
        for (pod, client), at in sorted(found.items())
        for container in members.get(pod, ())
        if container != client
    ]
