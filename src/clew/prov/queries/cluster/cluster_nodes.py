"""Pods, their containers, and requests as nodes of a lineage; and who touched a Pod by hand.

The graph knows containers: they read and write. A user knows Pods. So a node of a container says of
which Pod it is, with its image, its node and its namespace.
"""

import json
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import msgspec

from clew.documents.ids import Locator
from clew.prov.cluster.activity_uids import CLUSTER_KINDS, CONTAINER, POD, REQUEST
from clew.prov.cluster.facets import (
    FACET_TYPES,
    ContainerFacet,
    KubernetesFacet,
    Owner,
    RequestFacet,
    namespace_of_name,
    read_facet,
)
from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage_sql import FOREVER
from clew.prov.row_keys import location_key

_FACTS = """
SELECT s.id, s.kind, s.name, s.image, s.agent, s.facets, s.execution, p.name, p.node, p.agent,
  p.facets
FROM started s LEFT JOIN started p ON p.id = s.execution AND p.kind = 'pod'
WHERE s.id IN ({}) AND s.kind <> 'pod'
"""
_PODS = """
SELECT s.id, s.name, s.node, s.agent, s.facets FROM started s
WHERE s.id IN ({}) AND s.kind = 'pod'
"""
_COUNTS = """
SELECT execution, count(*) FROM started WHERE execution IN ({}) AND kind = 'container'
GROUP BY execution
"""
_NAMES = f"""
SELECT s.id, s.execution, p.name, p.at,
  coalesce((SELECT min(e.at) FROM ended e WHERE e.activity = p.id), {FOREVER})
FROM started s JOIN started p ON p.id = s.execution WHERE s.id IN ({{}}) AND p.kind = 'pod'
"""  # noqa: S608
_TOUCHES = """
SELECT v.location, g.version, g.at, g.how, coalesce(s.agent, '') FROM version v
JOIN generated g ON g.version = v.id JOIN started s ON s.id = g.activity
WHERE v.location IN ({}) AND v.maker = v.execution AND s.kind = 'request'
"""


class ClusterNode(NamedTuple):
    """What a node of a cluster's activity says beyond its words."""

    kind: str
    label: str
    namespace: str | None
    pod: str | None = None
    """NAMESPACE/NAME."""
    container: str | None = None
    image: str | None = None
    """As the Pod's author wrote it."""
    machine: str | None = None
    agent: str | None = None
    owner: str | None = None
    """The kind and the name of what created the Pod."""


class Touched(NamedTuple):
    """A request that touched a Pod by hand while it ran."""

    activity: int
    pod: int
    version: int
    at: int
    how: str
    by: str


def describe_activities(graph: Graph, keys: Collection[int]) -> dict[int, ClusterNode]:
    """What to show of those that are of a cluster."""
    found: dict[int, ClusterNode] = {}
    rows = [
        row
        for row in graph.connection.rows_in(_FACTS, keys)
        if row[1] in CLUSTER_KINDS or row[1] == CONTAINER
    ]
    pods = {row[6] for row in rows if row[1] == CONTAINER}
    counts: dict[int, int] = dict(graph.connection.rows_in(_COUNTS, pods))
    for row in rows:
        found[row[0]] = _describe(row, alone=counts.get(row[6], 0) <= 1)
    for key, name, *more, facets in graph.connection.rows_in(_PODS, set(keys) - found.keys()):
        machine, agent = more
        found[key] = ClusterNode(
            kind=POD,
            label=f"pod {name}",
            namespace=namespace_of_name(name),
            pod=name,
            machine=machine,
            agent=agent,
            owner=_owner(facets),
        )
    return found


def _describe(row: tuple[Any, ...], *, alone: bool) -> ClusterNode:
    _, kind, name, image, agent, facets, _, pod, machine, creator, of_pod = row
    facet = read_any_facet(facets, kind)
    if kind == CONTAINER:
        container = facet.name if isinstance(facet, ContainerFacet) else name
        label = f"pod {pod or '?'}" + ("" if alone or not container else f" ({container})")
        namespace = namespace_of_name(pod)
        owner = _owner(of_pod)
        return ClusterNode(kind, label, namespace, pod, container, image, machine, creator, owner)
    namespace = getattr(facet, "namespace", None) or namespace_of_name(name)
    if kind == REQUEST and isinstance(facet, RequestFacet):
        where = "/".join(part for part in (facet.namespace, facet.name) if part)
        what = "/".join(part for part in (facet.resource, facet.subresource) if part)
        by = f" by {agent}" if agent else ""
        return ClusterNode(kind, f"{facet.verb} {what} {where}{by}", namespace, agent=agent)
    return ClusterNode(kind, f"{kind} {name or ''}".strip(), namespace, agent=agent)


class _OwnedPod(msgspec.Struct, frozen=True):
    """Of a Pod's facet, its owner alone: the facet also has the whole spec."""

    owner: Owner | None = None


class _PodFacets(msgspec.Struct, frozen=True):
    kubernetes: _OwnedPod = _OwnedPod()


def _owner(facets: str | None) -> str | None:
    try:
        owner = msgspec.json.decode(facets or "{}", type=_PodFacets).kubernetes.owner
    except msgspec.DecodeError:
        return None
    return f"{owner.kind} {owner.name}" if owner and owner.name else None


def read_any_facet(facets: str, kind: str) -> KubernetesFacet | None:
    """The facet of an activity of this kind, from its row."""
    shape = FACET_TYPES.get(kind)
    known = json.loads(facets)
    return read_facet(known, shape) if shape is not None and isinstance(known, dict) else None


def namespace_of_locator(locator: Locator) -> str | None:
    """The namespace of what is in one, by its place."""
    scheme, _, rest = locator.partition("://")
    if scheme not in ("pvc", "configmap", "secret", "service", "pod"):
        return None
    return namespace_of_name(rest)


def find_touches(graph: Graph, activities: Iterable[int]) -> list[Touched]:
    """Who touched the Pods of these containers while they ran. A Pod's name, and the time, tell
    which Pod it was."""
    pods = graph.connection.rows_in(_NAMES, activities)
    places = {
        location_key(graph.project_uid, Locator(f"pod://{name}")): name
        for _, _, name, _, _ in pods
        if name
    }
    touches: dict[str, list[tuple[int, int, str, str]]] = {}
    for place, version, at, how, by in graph.connection.rows_in(_TOUCHES, places):
        touches.setdefault(places[place], []).append((version, at, how, by))
    return [
        Touched(activity, pod, version, at, how, by)
        for activity, pod, name, started, ended in pods
        for version, at, how, by in touches.get(name, ())
        if started <= at <= ended
    ]
