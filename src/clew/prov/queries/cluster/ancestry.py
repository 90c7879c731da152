"""The Pods that a target depends on, as plain data for a plan of a reproduction.

The walk is that of `clew trace`, as if nothing were watched: so its Pods are all that a plan by
files or by volumes may need. What each Pod read and left is then loaded for all Pods at once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from clew.documents.ids import Locator, Uid
from clew.prov.cluster.ancestry import (
    AncestorPod,
    Ancestry,
    FoundVersion,
    MadeVersion,
    Touch,
    VolumeWriters,
)
from clew.prov.cluster.facets import PodFacet
from clew.prov.graph import Graph
from clew.prov.queries.cluster.names import volume_of
from clew.prov.queries.cluster.peer_pods import (
    Connected,
    load_containers,
    load_images,
    load_peers,
)
from clew.prov.queries.cluster.pods import find_touches, read_any_facet
from clew.prov.queries.cluster.reads import Origin, ReadOrigins
from clew.prov.queries.cluster.volumes import Volume, Volumes, is_whole
from clew.prov.queries.formats import NETWORK
from clew.prov.queries.lineage.lineage_sql import FOREVER, Edge, LineageQueries, Version
from clew.prov.queries.lineage.walk import Walk
from clew.prov.queries.targets import Target
from clew.prov.row_keys import activity_key, digest_text

MAX_NODES = 1_000_000
"""Nodes after which the walk stops."""
MAX_MAKERS = 1_000
"""Pods that may have made one file whose writing no witness saw: the last ones."""

_PEERS = (*NETWORK, "service://", "pod://", "ip://")
_PODS = """
SELECT s.id, s.uid, s.name, s.at, s.node,
  (SELECT min(e.at) FROM ended e WHERE e.activity = s.id),
  (SELECT max(e.status) FROM ended e WHERE e.activity = s.id)
FROM started s WHERE s.id IN ({}) AND s.kind = 'pod'
"""
_GONE = "SELECT version FROM invalidated WHERE activity IN ({})"
_BYTES = "SELECT version, mtime, source FROM content WHERE version IN ({})"
_FACETS = "SELECT uid, facets FROM started WHERE id IN ({}) AND kind = 'pod'"
_EXECUTION = "SELECT s.execution FROM started s WHERE s.id IN ({})"


class _Bytes(NamedTuple):
    """What else is known of a version's bytes."""

    mtime: int
    source: str | None


def find_ancestry(graph: Graph, target: Target, *, as_of: int | None = None) -> Ancestry:
    """The Pods that `target` depends on, and what each read and left; nothing later than `as_of`
    (nanoseconds)."""
    until = FOREVER if as_of is None else as_of
    walk = Walk(graph, up=True, everything=True, limit=MAX_NODES, until=until, ignore_watched=True)
    walk.from_target(target, None)
    return _Loader(graph, set(walk.reached().activities), until).load(target)


def load_pods(graph: Graph, keys: Collection[int]) -> tuple[AncestorPod, ...]:
    """What these Pods read and left, by the rows of their executions."""
    target = Target("execution", "", tuple(keys))
    return _Loader(graph, keys, FOREVER).load(target).pods


def load_pod_facets(graph: Graph, uids: Iterable[Uid]) -> dict[Uid, PodFacet]:
    """What is known of these Pods as Kubernetes describes them; without those that are unknown."""
    keys = [activity_key(graph.project_uid, uid) for uid in uids]
    facets = {
        Uid(uid): read_any_facet(text, "pod")
        for uid, text in graph.connection.rows_in(_FACETS, keys)
    }
    return {uid: facet for uid, facet in facets.items() if isinstance(facet, PodFacet)}


class _Loader:
    """Loads what is known of the Pods to which these activities belong."""

    def __init__(self, graph: Graph, activities: Collection[int], until: int) -> None:
        self._graph = graph
        self._connection = graph.connection
        self._until = until
        self._steps = LineageQueries(graph.connection)
        self._reads = ReadOrigins(graph, self._steps)
        self._volumes = Volumes(graph, self._steps)
        pods = {row[0] for row in self._connection.rows_in(_EXECUTION, activities)}
        self._rows = {row[0]: row for row in self._connection.rows_in(_PODS, pods)}
        self._containers = load_containers(graph, self._rows)
        self._pod_of = {key: pod for key, (pod, _) in self._containers.items()}
        self._named: dict[Locator, Volume] = {}
        """The volumes that a Pod or the target names."""

    def load(self, target: Target) -> Ancestry:
        uses = [
            edge
            for edge in self._steps.uses(self._pod_of, owned=True)
            if edge.how != "exec" and edge.at <= self._until
        ]
        products = self._steps.products(self._pod_of)
        versions = self._steps.versions({edge.version for edge in (*uses, *products)})
        inputs, volumes = self._load_inputs(uses, versions)
        peers = load_peers(self._graph, self._reads, self._list_connections(uses, versions))
        outputs = self._load_outputs(products, versions)
        images = load_images(self._graph, self._containers)
        touches: dict[int, dict[Touch, None]] = defaultdict(dict)
        for touch in find_touches(self._graph, self._pod_of):
            touches[touch.pod][Touch(how=touch.how, by=touch.by, at=touch.at)] = None
        pods = [
            AncestorPod(
                uid=Uid(row[1]),
                namespace=str(row[2] or "").partition("/")[0],
                name=str(row[2] or "").partition("/")[2],
                started=row[3],
                ended=row[5],
                status=row[6],
                node=row[4],
                images=images.get(key, {}),
                inputs=tuple(inputs.get(key, ())),
                outputs=tuple(made for made, _ in outputs.get(key, ())),
                volumes=tuple(volumes.get(key, ())),
                touched=tuple(touches.get(key, ())),
                peers=peers.get(key, ()),
            )
            for key, row in self._rows.items()
        ]
        wanted, wanted_volumes = self._load_target(target, outputs)
        return Ancestry(
            target=target.label,
            wanted=tuple(wanted),
            pods=tuple(sorted(pods, key=lambda pod: (pod.started, pod.uid))),
            volumes=tuple(self._list_writers(volume) for volume in self._named.values()),
            wanted_volumes=tuple(wanted_volumes),
        )

    def _load_inputs(
        self, uses: list[Edge], versions: Mapping[int, Version]
    ) -> tuple[dict[int, list[FoundVersion]], dict[int, dict[Locator, None]]]:
        """By Pod: what it read, and the volumes it had."""
        inputs: dict[int, list[FoundVersion]] = defaultdict(list)
        volumes: dict[int, dict[Locator, None]] = defaultdict(dict)
        watched = self._volumes.watched(self._pod_of)
        read: dict[int, dict[int, Version]] = defaultdict(dict)
        self._volumes.times(self._pod_of)
        for edge in uses:
            version, pod = versions[edge.version], self._pod_of[edge.activity]
            if is_whole(version):
                volume = self._volumes.accessed(edge, version)
                volumes[pod][volume.locator] = None
                self._named[volume.locator] = volume
                if version.location not in watched[edge.activity]:
                    inputs[pod].append(FoundVersion(locator=volume.locator, inferred=True))
            elif not version.locator.startswith(_PEERS) and self._pod_of.get(version.maker) != pod:
                read[pod][version.key] = version
        found = [version for seen in read.values() for version in seen.values()]
        origins = self._reads.find(found)
        loaded = self._steps.versions(origin.key for origin in origins.values())
        extra = self._load_bytes({*origins, *loaded})
        for pod, seen in read.items():
            for version in seen.values():
                origin = loaded[origins[version.key].key]
                if self._pod_of.get(origin.maker) != pod:
                    inputs[pod].append(
                        self._describe_found(version, origins[version.key], origin, extra)
                    )
        return inputs, volumes

    def _list_connections(
        self, uses: list[Edge], versions: Mapping[int, Version]
    ) -> Iterator[Connected]:
        for edge in uses:
            place = versions[edge.version].locator
            if place.startswith(_PEERS):
                yield Connected(self._pod_of[edge.activity], edge.activity, edge.at, place)

    def _describe_found(
        self, version: Version, origin: Origin, made: Version, extra: Mapping[int, _Bytes]
    ) -> FoundVersion:
        makers = self._find_makers(made)
        has_bytes = version if version.digest is not None else made
        known = extra.get(has_bytes.key)
        return FoundVersion(
            locator=version.locator,
            makers=makers,
            digest=digest_text(has_bytes.digest),
            stored=bool(version.stored or made.stored),
            size=has_bytes.size or 0,
            mode=0o644 if has_bytes.mode is None else has_bytes.mode,
            mtime=known.mtime if known else 0,
            source=known.source if known else None,
            inferred=origin.inferred or len(makers) > 1,
        )

    def _find_makers(self, version: Version) -> tuple[Uid, ...]:
        """The Pods that made a version, or that may have, if no witness saw its writing."""
        if not version.found:
            row = self._rows.get(version.execution)
            return () if row is None else (Uid(row[1]),)
        volume = self._volumes.of_file(version.locator, unwatched=True)
        if volume is None:
            return ()
        writers = self._volumes.writers(volume, before=version.at, last=MAX_MAKERS)
        pods = dict.fromkeys(access.pod for access in writers if access.pod != version.execution)
        return tuple(Uid(self._rows[pod][1]) for pod in pods if pod in self._rows)

    def _load_outputs(
        self, products: list[Edge], versions: Mapping[int, Version]
    ) -> dict[int, list[tuple[MadeVersion, Version]]]:
        """By Pod: the last version of each file and object that it left."""
        gone = {row[0] for row in self._connection.rows_in(_GONE, self._pod_of)}
        last: dict[tuple[int, Locator], Version] = {}
        for edge in products:
            version = versions[edge.version]
            place = self._pod_of[edge.activity], version.locator
            if not is_whole(version) and version.at <= self._until:
                known = last.get(place)
                if known is None or version.ordinal > known.ordinal:
                    last[place] = version
        left = {place: version for place, version in last.items() if version.key not in gone}
        extra = self._load_bytes(version.key for version in left.values())
        outputs: dict[int, list[tuple[MadeVersion, Version]]] = defaultdict(list)
        for (pod, locator), version in sorted(left.items()):
            found = extra.get(version.key)
            made = MadeVersion(
                locator=locator,
                digest=digest_text(version.digest),
                stored=bool(version.stored),
                size=version.size or 0,
                source=found.source if found else None,
            )
            outputs[pod].append((made, version))
        return outputs

    def _load_target(
        self, target: Target, outputs: Mapping[int, list[tuple[MadeVersion, Version]]]
    ) -> tuple[list[FoundVersion], list[Locator]]:
        if target.kind == "volume" and target.locator is not None:
            volume = self._volumes.volume(target.locator)
            self._named[volume.locator] = volume
            return [FoundVersion(locator=volume.locator, inferred=True)], [volume.locator]
        keys: Iterable[int] = target.keys
        if target.kind != "version":
            pods = {self._pod_of.get(key, key) for key in target.keys}
            keys = [version.key for pod in pods for _, version in outputs.get(pod, ())]
        versions = self._steps.versions(keys)
        origins = self._reads.find(versions.values())
        loaded = self._steps.versions(origin.key for origin in origins.values())
        extra = self._load_bytes({*origins, *loaded})
        wanted = [
            self._describe_found(version, origins[key], loaded[origins[key].key], extra)
            for key, version in versions.items()
        ]
        on = dict.fromkeys(place for found in wanted if (place := volume_of(found.locator)))
        for place in on:
            self._named[place] = self._volumes.volume(place)
        return wanted, [*on]

    def _list_writers(self, volume: Volume) -> VolumeWriters:
        first: dict[int, int] = {}
        for access in self._volumes.writers(volume, before=FOREVER):
            first[access.pod] = min(access.started, first.get(access.pod, FOREVER))
        writers = sorted(
            (started, Uid(self._rows[pod][1]))
            for pod, started in first.items()
            if pod in self._rows
        )
        return VolumeWriters(
            locator=volume.locator, writers=tuple((uid, started) for started, uid in writers)
        )

    def _load_bytes(self, keys: Iterable[int]) -> dict[int, _Bytes]:
        rows: list[tuple[Any, ...]] = self._connection.rows_in(_BYTES, keys)
        return {key: _Bytes(mtime, source) for key, mtime, source in rows}
