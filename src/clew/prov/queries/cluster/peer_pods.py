"""What Pods connected to, and what ran in the Pods that may have answered.

So a reproduction can tell whether a dependency on a Service is as it was. A connection is known by
an address and by the name that the client gave: both are one peer.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from clew.documents.ids import Digest, Locator, Uid
from clew.prov.cluster.ancestry_types import Peer, PeerPod
from clew.prov.cluster.locators import pod_name_locator
from clew.prov.graph import Graph
from clew.prov.queries.cluster.cluster_nodes import read_any_facet
from clew.prov.queries.cluster.endpoints import ADDRESS, Endpoints
from clew.prov.queries.cluster.read_origins import ReadOrigins
from clew.prov.queries.cluster.visibility import may_see_place
from clew.prov.queries.lineage.lineage_sql import LineageQueries
from clew.prov.row_keys import digest_text

_CONFIG_MAP = "configmap://"
_PODS = "SELECT id, uid, name FROM started WHERE id IN ({}) AND kind = 'pod'"
_CONTAINERS = """
SELECT s.id, s.execution, s.name, s.kind, s.facets FROM started s
WHERE s.execution IN ({}) AND s.kind = 'container' ORDER BY s.at
"""
_IMAGES = """
SELECT u.activity, l.locator FROM used u JOIN version v ON v.id = u.version
JOIN location l ON l.id = v.location WHERE u.activity IN ({}) AND u.how = 'exec'
"""


class Connected(NamedTuple):
    """A use of a place by a Pod. The address and the name of one connection have one time."""

    pod: int
    activity: int
    at: int
    place: Locator


def load_peers(
    graph: Graph, reads: ReadOrigins, connections: Iterable[Connected]
) -> dict[int, tuple[Peer, ...]]:
    """By Pod, what it connected to. Pods and Services that the caller may not see are left out."""
    moments: dict[tuple[int, int, int], list[Locator]] = defaultdict(list)
    for one in connections:
        moments[one.pod, one.activity, one.at].append(one.place)
    endpoints = Endpoints(graph)
    endpoints.load({place for places in moments.values() for place in places})
    found: dict[int, dict[_Names, set[int]]] = defaultdict(lambda: defaultdict(set))
    for (client, _, at), places in moments.items():
        services = filter(None, (endpoints.service_at(place, at) for place in places))
        service = next((one for one in services if may_see_place(graph, one)), None)
        if seen := [place for place in places if may_see_place(graph, place)]:
            names = _Names(service, min(seen, key=_is_address))
            answered = {pod for place in places for pod in endpoints.pods_at(place, at)}
            found[client][names] |= answered
    answering = {pod for peers in found.values() for pods in peers.values() for pod in pods}
    described = _describe_pods(graph, reads, answering)
    return {
        client: tuple(
            _describe_peer(names, [described[pod] for pod in sorted(pods) if pod in described])
            for names, pods in sorted(peers.items(), key=lambda peer: peer[0].given)
        )
        for client, peers in found.items()
    }


class _Names(NamedTuple):
    """The Service that was reached, and what the client asked for."""

    service: Locator | None
    given: Locator


def _is_address(place: Locator) -> bool:
    return place.startswith(ADDRESS)


def _describe_peer(names: _Names, pods: Sequence[PeerPod]) -> Peer:
    place = names.service or names.given
    if names.service is None and pods:  # an address belongs to one Pod
        place = pod_name_locator(pods[0].namespace, pods[0].name)
    return Peer(locator=place, pods=tuple(pods))


def load_images(
    graph: Graph, containers: Mapping[int, tuple[int, str]]
) -> dict[int, dict[str, str]]:
    """By Pod, the digests of images by the names of containers. `containers`: the Pod and the name
    of each."""
    images: dict[int, dict[str, str]] = defaultdict(dict)
    for key, locator in graph.connection.rows_in(_IMAGES, containers):
        pod, name = containers[key]
        images[pod][name] = locator.removeprefix("image://")
    return images


def load_containers(graph: Graph, pods: Iterable[int]) -> dict[int, tuple[int, str]]:
    """The containers of these Pods, each with its Pod and its name."""
    return {
        key: (pod, getattr(read_any_facet(facets, kind), "name", None) or name or "")
        for key, pod, name, kind, facets in graph.connection.rows_in(_CONTAINERS, pods)
    }


def _describe_pods(graph: Graph, reads: ReadOrigins, keys: Iterable[int]) -> dict[int, PeerPod]:
    names = {
        key: (Uid(uid), *str(name or "").partition("/")[::2])
        for key, uid, name in graph.connection.rows_in(_PODS, keys)
    }
    names = {key: name for key, name in names.items() if graph.may_read(name[1])}
    containers = load_containers(graph, names)
    images = load_images(graph, containers)
    config_maps = _load_config_maps(graph, reads, containers)
    return {
        key: PeerPod(
            uid=uid,
            namespace=namespace,
            name=name,
            images=images.get(key, {}),
            config_maps=config_maps.get(key, {}),
        )
        for key, (uid, namespace, name) in names.items()
    }


def _load_config_maps(
    graph: Graph, reads: ReadOrigins, containers: Mapping[int, tuple[int, str]]
) -> dict[int, dict[str, Digest]]:
    steps = LineageQueries(graph.connection)
    uses = steps.uses(containers, owned=True)
    used = steps.versions({edge.version for edge in uses})
    maps = {key: one for key, one in used.items() if one.locator.startswith(_CONFIG_MAP)}
    origins = reads.find(maps.values())
    made = steps.versions(origin.key for origin in origins.values())
    found: dict[int, dict[str, Digest]] = defaultdict(dict)
    for edge in uses:
        if edge.version in maps:
            digest = digest_text(made[origins[edge.version].key].digest)
            if digest is not None:
                name = maps[edge.version].locator.rpartition("/")[2]
                found[containers[edge.activity][0]][name] = digest
    return found
