"""What of a lineage a caller may see: what is in namespaces that the caller may read.

Activities of a cluster are in a namespace, and so are claims, ConfigMaps and Secrets. An object or
another version belongs to the Pod that made or found it; who may see a Pod may see what it read,
too. What laptops and pipelines recorded, and images, are in no namespace. What is left out is
counted, not named.
"""

import json
from collections.abc import Iterable

from msgspec import UNSET, structs

from clew.documents.files.versions import Version
from clew.documents.ids import Digest, ExecutionId, Locator
from clew.documents.lineage.lineage import Edge, Hit, Node
from clew.errors import NotAllowed
from clew.prov.cluster.ancestry_types import Ancestry
from clew.prov.cluster.facets import namespace_of_activity
from clew.prov.graph import Graph
from clew.prov.queries.cluster.cluster_nodes import namespace_of_locator
from clew.prov.queries.cluster.names import IMAGE
from clew.prov.row_keys import digest_bytes

_NAMES = """
SELECT x.number, s.kind, s.name, CASE WHEN s.kind = 'pod' THEN '' ELSE s.facets END
FROM started s JOIN execution x ON x.id = s.id
WHERE x.project = ? AND x.number IN ({}) AND s.kind IN ('pod', 'request', 'claim', 'controller')
"""
_HOLDERS = """
SELECT c.version, x.number, l.locator FROM content c JOIN version v ON v.id = c.version
JOIN location l ON l.id = v.location JOIN execution x ON x.id = v.execution
WHERE x.project = ? AND c.digest = ? AND c.version > ? ORDER BY c.version LIMIT ?
"""
_PLACES = """
SELECT v.id, x.number, l.locator FROM version v JOIN location l ON l.id = v.location
JOIN execution x ON x.id = v.execution WHERE v.id IN ({})
"""
HOLDERS_AT_ONCE = 10_000
_FIRST = -(1 << 63)
_HIDDEN = "it is in a namespace that you may not read"
_HINT = "kubectl auth can-i list pods --namespace NAMESPACE"


def check_namespace(graph: Graph, namespace: str | None) -> None:
    """Refuse what is in a namespace that the caller named and may not read, whether it exists or
    not."""
    if namespace is not None and not graph.may_read(namespace):
        raise NotAllowed(f"you may not read the namespace {namespace[:100]}", hint=_HINT)


def check_owner(graph: Graph, namespace: str | None) -> None:
    """Refuse what turned out to be in such a namespace: the caller does not learn its name."""
    if namespace is not None and not graph.may_read(namespace):
        raise NotAllowed(_HIDDEN, hint=_HINT)


def check_execution(graph: Graph, number: int) -> None:
    """Refuse an execution that is in such a namespace."""
    if graph.is_restricted:
        check_owner(graph, _load_namespaces(graph, [number]).get(number))


def check_content(graph: Graph, digest: Digest) -> None:
    """Refuse bytes that only versions in such namespaces hold."""
    if not graph.is_restricted:
        return
    after, found, limit = _FIRST, False, HOLDERS_AT_ONCE
    while holders := graph.connection.rows(
        _HOLDERS, (graph.project, digest_bytes(digest), after, limit)
    ):
        owners = _load_namespaces(graph, {int(number) for _, number, _ in holders})
        if any(_is_readable(graph, owners, *holder) for _, *holder in holders):
            return
        after, found = int(holders[-1][0]), True
        if len(holders) < limit:
            break
    if found:
        raise NotAllowed(
            "only namespaces that you may not read have this content",
            hint=_HINT,
        )


def withhold_versions(graph: Graph, locator: Locator, versions: list[Version]) -> list[Version]:
    """The versions of a place that the caller may see."""
    if not graph.is_restricted:
        return versions
    owners = _load_namespaces(graph, {int(version.execution[1:]) for version in versions})
    return [one for one in versions if _is_readable(graph, owners, int(one.execution[1:]), locator)]


def withhold_keys(graph: Graph, keys: tuple[int, ...], locator: Locator | None) -> tuple[int, ...]:
    """Those of these versions that the caller may see; refused if none of them is at `locator`."""
    if not graph.is_restricted or not keys:
        return keys
    rows = graph.connection.rows_in(_PLACES, keys)
    owners = _load_namespaces(graph, {int(number) for _, number, _ in rows})
    shown = {
        int(key): place
        for key, number, place in rows
        if _is_readable(graph, owners, int(number), place)
    }
    if locator not in shown.values():
        raise NotAllowed(_HIDDEN, hint=_HINT)
    return tuple(key for key in keys if key in shown)


def withhold_hits(graph: Graph, hits: list[Hit]) -> list[Hit]:
    """The results of a search that the caller may see."""
    if not graph.is_restricted:
        return hits
    owners = _load_namespaces(graph, {int(hit.execution[1:]) for hit in hits if hit.execution})
    return [hit for hit in hits if not hit.execution or _may_see(graph, owners, hit.execution)]


def find_hidden(graph: Graph, nodes: Iterable[Node], edges: Iterable[Edge]) -> set[str]:
    """The nodes that the caller may not see."""
    nodes = list(nodes)
    numbers = {int(node.execution[1:]) for node in nodes if node.execution}
    owners = _load_namespaces(graph, numbers)

    def is_hidden(namespace: str | None) -> bool:
        return namespace is not None and not graph.may_read(namespace)

    hidden: set[str] = set()
    foreign: set[str] = set()
    activities = {node.id for node in nodes if node.command is not UNSET}
    for node in nodes:
        own = node.namespace or namespace_of_locator(node.locator or Locator(""))
        owner = owners.get(int(node.execution[1:])) if node.execution else None
        if is_hidden(own) or (node.id in activities and is_hidden(owner)):
            hidden.add(node.id)
        elif is_hidden(owner) and not str(node.locator or "").startswith(IMAGE):
            foreign.add(node.id)
    for edge in edges:
        if edge.end in activities and edge.end not in hidden:
            foreign.discard(edge.start)  # it read this itself
    return hidden | foreign


def withhold(
    graph: Graph, nodes: list[Node], edges: list[Edge], roots: Iterable[str]
) -> tuple[list[Node], list[Edge], int]:
    """The nodes and edges that the caller may see, and how many nodes are left out: also those
    that are connected to the roots only through hidden ones."""
    if not graph.is_restricted:
        return nodes, edges, 0
    hidden = find_hidden(graph, nodes, edges)
    seen = [edge for edge in edges if edge.start not in hidden and edge.end not in hidden]
    kept = {node.id for node in nodes} - hidden
    roots = list(roots)
    if roots:
        kept = _find_connected(seen, kept.intersection(roots))
        if not kept:
            raise NotAllowed(_HIDDEN, hint=_HINT)
    owners = _candidate_owners(graph, nodes)
    shown = [_without_candidates(graph, node, owners) for node in nodes if node.id in kept]
    return (
        shown,
        [edge for edge in seen if edge.start in kept and edge.end in kept],
        len(nodes) - len(shown),
    )


def withhold_pods(graph: Graph, ancestry: Ancestry) -> Ancestry:
    """The ancestry without Pods that the caller may not see, which only answered over the network.
    Refused if such a Pod made what another one read, or such a place has it: a plan without it
    would be wrong."""
    if not graph.is_restricted:
        return ancestry
    shown = tuple(pod for pod in ancestry.pods if graph.may_read(pod.namespace))
    read = [*ancestry.wanted, *(found for pod in shown for found in pod.inputs)]
    makers = {maker for found in read for maker in found.makers}
    makers |= {uid for volume in ancestry.volumes for uid, _ in volume.writers}
    places = {found.locator for found in read}
    places |= {made.locator for pod in shown for made in pod.outputs}
    places |= {volume.locator for volume in ancestry.volumes}
    hidden = sum(not may_see_place(graph, place) for place in places)
    hidden += sum(
        not graph.may_read(pod.namespace) and (pod.uid in makers or not shown)
        for pod in ancestry.pods
    )
    if hidden:
        raise NotAllowed(
            f"it depends on Pods or files in namespaces that you may not read: {hidden}", hint=_HINT
        )
    return structs.replace(ancestry, pods=shown)


def _find_connected(edges: Iterable[Edge], starts: set[str]) -> set[str]:
    neighbours: dict[str, list[str]] = {}
    for edge in edges:
        neighbours.setdefault(edge.start, []).append(edge.end)
        neighbours.setdefault(edge.end, []).append(edge.start)
    found, waiting = set(starts), [*starts]
    while waiting:
        for other in neighbours.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _candidate_owners(graph: Graph, nodes: Iterable[Node]) -> dict[int, str]:
    numbers = {
        int(candidate.execution[1:]) for node in nodes for candidate in node.same_content or ()
    }
    return _load_namespaces(graph, numbers)


def _without_candidates(graph: Graph, node: Node, owners: dict[int, str]) -> Node:
    """The node without the equal versions that the caller may not see."""
    candidates = node.same_content or ()
    shown = tuple(c for c in candidates if _may_see(graph, owners, c.execution))
    return node if len(shown) == len(candidates) else structs.replace(node, same_content=shown)


def _may_see(graph: Graph, owners: dict[int, str], execution: ExecutionId) -> bool:
    namespace = owners.get(int(execution[1:]))
    return namespace is None or graph.may_read(namespace)


def may_see_place(graph: Graph, place: Locator) -> bool:
    """Whether the caller may see what is at a place, as far as its name tells."""
    namespace = namespace_of_locator(place)
    return namespace is None or graph.may_read(namespace)


def _is_readable(graph: Graph, owners: dict[int, str], number: int, locator: str) -> bool:
    """Whether both the place of a version and its execution may be read."""
    namespace = owners.get(number)
    return may_see_place(graph, Locator(locator)) and (
        namespace is None or graph.may_read(namespace)
    )


def _load_namespaces(graph: Graph, numbers: Iterable[int]) -> dict[int, str]:
    """The namespaces of those of these executions that are of a cluster."""
    rows = graph.connection.rows_in(_NAMES, numbers, before=(graph.project,))
    found = {
        number: namespace_of_activity(kind, name, json.loads(facets or "{}"))
        for number, kind, name, facets in rows
    }
    return {number: namespace for number, namespace in found.items() if namespace}
