"""What existed in a cluster at a time, as far as the audit witness saw it.

An object exists from its creation to its end; an agent that did not see the end does not know it. A
ConfigMap or a Secret exists from a request that wrote it to one that deleted it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clew.documents.document import from_nanoseconds
from clew.documents.ids import Locator
from clew.documents.lineage.cluster_state import ClusterObject, ClusterState
from clew.prov.cluster.activity_uids import CLAIM, POD
from clew.prov.cluster.facets import ControllerFacet, Owner, PodFacet
from clew.prov.cluster.locators import claim_locator, service_locator
from clew.prov.graph import Graph
from clew.prov.queries.cluster.cluster_nodes import read_any_facet
from clew.prov.queries.cluster.endpoints import Endpoints
from clew.prov.queries.cluster.names import ClaimBindings
from clew.prov.queries.cluster.peer_pods import load_containers, load_images
from clew.prov.queries.formats import execution_id
from clew.prov.row_keys import digest_text

MAX_OBJECTS = 10_000
_KINDS = {POD: "Pod", CLAIM: "PersistentVolumeClaim"}
_VERSIONED = {"configmap": "ConfigMap", "secret": "Secret"}
_LAST = "\U0010ffff"

# The list of kinds is that of the index `started_object`.
_OBJECTS = f"""
SELECT s.id, x.number, s.kind, s.name, s.at, s.agent, s.node, s.facets
FROM started s JOIN execution x ON x.id = s.id
WHERE s.kind IN ('pod', 'claim', 'controller', 'request') AND s.kind <> 'request'
AND x.project = ? AND s.at <= ? AND s.name >= ? AND s.name <= ?
AND NOT EXISTS (SELECT 1 FROM ended e WHERE e.activity = s.id AND e.at <= ?)
ORDER BY s.kind, s.name, s.at LIMIT {MAX_OBJECTS + 1}
"""  # noqa: S608
_CHANGES = """
SELECT l.locator, g.at, {gone}, c.digest, s.agent
FROM started s JOIN execution x ON x.id = s.id JOIN {table} g ON g.activity = s.id
JOIN version v ON v.id = g.version JOIN location l ON l.id = v.location
LEFT JOIN content c ON c.version = v.id
WHERE s.kind IN ('pod', 'claim', 'controller', 'request') AND s.kind = 'request'
AND x.project = ? AND s.at <= ? AND g.at <= ?
"""


class _Row(NamedTuple):
    """A Pod, a claim or a controller."""

    key: int
    number: int
    kind: str
    name: str
    since: int
    agent: str | None
    node: str | None
    facets: str

    @property
    def names(self) -> tuple[str, str]:
        namespace, _, name = self.name.partition("/")
        return namespace, name


def load_cluster_state(graph: Graph, at: int, *, namespace: str | None = None) -> ClusterState:
    """`at`: in nanoseconds. What is in namespaces that the caller may not read is left out."""
    low, high = ("", _LAST) if namespace is None else (f"{namespace}/", f"{namespace}/{_LAST}")
    found = graph.connection.rows(_OBJECTS, (graph.project, at, low, high, at))
    rows = [_Row(*row) for row in found]
    rows = [row for row in rows if graph.may_read(row.names[0])]
    objects = [
        *_describe_objects(graph, rows, at),
        *(one for one in _list_versioned(graph, at) if namespace in (None, one.namespace)),
    ]
    objects.sort(key=lambda one: (one.kind, one.namespace, one.name))
    truncated = max(len(objects), len(found)) > MAX_OBJECTS
    return ClusterState(
        at=from_nanoseconds(at), objects=tuple(objects[:MAX_OBJECTS]), truncated=truncated
    )


def _describe_objects(graph: Graph, rows: Sequence[_Row], at: int) -> Iterator[ClusterObject]:
    pods = {row.key: row for row in rows if row.kind == POD}
    images = load_images(graph, load_containers(graph, pods))
    bindings = ClaimBindings(graph)
    bindings.load(claim_locator(*row.names) for row in rows if row.kind == CLAIM)
    facets = {row.key: read_any_facet(row.facets, row.kind) for row in rows}
    kinds = {key: facet.kind for key, facet in facets.items() if isinstance(facet, ControllerFacet)}
    behind = _find_endpoints(
        graph, [row for row in rows if kinds.get(row.key) == "Service"], pods, at
    )
    for row in rows:
        facet = facets[row.key]
        namespace, name = row.names
        owner = facet.owner if isinstance(facet, PodFacet | ControllerFacet) else None
        volume = None
        if row.kind == CLAIM:
            bound = bindings.volume_at(claim_locator(namespace, name), at)
            volume = bound.partition("@")[2] or None
        yield ClusterObject(
            kind=kinds.get(row.key) or _KINDS.get(row.kind, row.kind),
            namespace=namespace,
            name=name,
            id=execution_id(row.number),
            since=from_nanoseconds(row.since),
            agent=row.agent,
            owner=_describe_owner(owner),
            node=row.node,
            images=images.get(row.key, {}),
            volume=volume,
            pods=behind.get(row.key, ()),
            digest=None,
        )


def _find_endpoints(
    graph: Graph, services: Sequence[_Row], pods: Mapping[int, _Row], at: int
) -> dict[int, tuple[str, ...]]:
    """By Service, the names of the Pods that it led to."""
    endpoints = Endpoints(graph, lag=0)
    places = {row.key: service_locator(*row.names) for row in services}
    endpoints.load(places.values())
    return {
        key: tuple(
            sorted(pods[pod].names[1] for pod in endpoints.pods_at(place, at) if pod in pods)
        )
        for key, place in places.items()
    }


def _describe_owner(owner: Owner | None) -> str | None:
    return None if owner is None else f"{owner.kind} {owner.name}"


def _list_versioned(graph: Graph, at: int) -> Iterator[ClusterObject]:
    """The last version of each ConfigMap and Secret that was not deleted."""
    last: dict[Locator, tuple[Any, ...]] = {}
    for table, gone in (("generated", 0), ("invalidated", 1)):
        query = _CHANGES.format(table=table, gone=gone)
        for locator, *change in graph.connection.rows(query, (graph.project, at, at)):
            known = last.get(locator)
            if known is None or tuple(change[:2]) > known[:2]:
                last[locator] = tuple(change)
    for locator, (since, gone, digest, agent) in last.items():
        scheme, _, names = locator.partition("://")
        namespace, _, name = names.partition("/")
        if gone or scheme not in _VERSIONED or not graph.may_read(namespace):
            continue
        yield ClusterObject(
            kind=_VERSIONED[scheme],
            namespace=namespace,
            name=name,
            id=None,
            since=from_nanoseconds(since),
            agent=agent,
            owner=None,
            node=None,
            images={},
            volume=None,
            pods=(),
            digest=digest_text(digest),
        )
