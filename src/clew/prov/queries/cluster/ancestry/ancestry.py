"""The Pods that a target depends on, as plain data for a plan of a reproduction.

The walk comes to all Pods that a plan by files or by volumes may need (`ancestor_walk`). What each
of them read and left is then loaded for many Pods at once. A plan needs it of those Pods only whose
outputs may have to be made again: mostly a few Pods of a long history.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from clew.documents.ids import Locator, Uid
from clew.garbage_collection import collect_seldom
from clew.prov.cluster.ancestry_types import (
    AncestorPod,
    Ancestry,
    FoundVersion,
    MadeVersion,
    Peer,
    Touch,
    VolumeWriters,
)
from clew.prov.cluster.facets import PodFacet
from clew.prov.graph import Graph
from clew.prov.queries.cluster.ancestry.ancestor_walk import OBJECT_STORE, PEERS, AncestorWalk
from clew.prov.queries.cluster.ancestry.needed_pods import TARGET, NeededPods
from clew.prov.queries.cluster.cluster_nodes import find_touches, read_any_facet
from clew.prov.queries.cluster.names import volume_of
from clew.prov.queries.cluster.peer_pods import (
    Connected,
    load_containers,
    load_images,
    load_peers,
)
from clew.prov.queries.cluster.read_origins import Origin, ReadOrigins
from clew.prov.queries.cluster.volume_accesses import Accesses, Volume, Volumes, is_whole
from clew.prov.queries.lineage.lineage_sql import FOREVER, Edge, LineageQueries, Version
from clew.prov.queries.targets import Target
from clew.prov.row_keys import activity_key, digest_text

MAX_MAKERS = 1_000
"""Pods that may have made one file whose writing no witness saw: the last ones."""
_STARTED = 3
"""A column of `_PODS`."""
_PODS = """
SELECT s.id, s.uid, s.name, s.at, s.node,
  (SELECT min(e.at) FROM ended e WHERE e.activity = s.id),
  (SELECT max(e.status) FROM ended e WHERE e.activity = s.id)
FROM started s WHERE s.id IN ({}) AND s.kind = 'pod'
"""
_GONE = "SELECT version FROM invalidated WHERE at <= ? AND activity IN ({})"
_BYTES = "SELECT version, mtime, source FROM content WHERE version IN ({})"
_FACETS = "SELECT uid, facets FROM started WHERE id IN ({}) AND kind = 'pod'"
_EXECUTION = "SELECT s.execution FROM started s WHERE s.id IN ({})"
_STORED = """
SELECT DISTINCT c.digest, v.execution FROM content c JOIN version v ON v.id = c.version
WHERE c.digest IN ({}) AND c.stored = 1
"""


class _Bytes(NamedTuple):
    """What else is known of a version's bytes."""

    mtime: int
    source: str | None


@collect_seldom()
def find_ancestry(
    graph: Graph, target: Target, *, as_of: int | None = None, everything: bool = False
) -> Ancestry:
    """The Pods that `target` depends on, and what those that a plan may run read and left; nothing
    later than `as_of` (nanoseconds). `everything`: also what the others did. Of Pods that the
    caller may not see, neither what they did nor what is behind them."""
    until = FOREVER if as_of is None else as_of
    walk = AncestorWalk(graph, until=until)
    walk.from_target(target, None)
    loader = _Loader(graph, walk.mounted, until, hidden=walk.hidden, accesses=walk.accesses)
    if everything:
        loader.load(walk.mounted)
        loader.load_target(target)
    else:
        loader.load_needed(target, walk)
    return loader.build(target.label)


def load_pods(graph: Graph, keys: Collection[int]) -> tuple[AncestorPod, ...]:
    """What these Pods read and left, by the rows of their executions."""
    loader = _Loader(graph, keys, FOREVER)
    loader.load(keys)
    return loader.build("").pods


def load_pod_facets(graph: Graph, uids: Iterable[Uid]) -> dict[Uid, PodFacet]:
    """What is known of these Pods as Kubernetes describes them; without those that are unknown."""
    keys = [activity_key(graph.project_uid, uid) for uid in uids]
    facets = {
        Uid(uid): read_any_facet(text, "pod")
        for uid, text in graph.connection.rows_in(_FACETS, keys)
    }
    return {uid: facet for uid, facet in facets.items() if isinstance(facet, PodFacet)}


def _is_made_by(version: Version, pod: int) -> bool:
    return version.execution == pod and not version.found


class _Loader:
    """Loads what is known of Pods, by the rows of their executions."""

    def __init__(
        self,
        graph: Graph,
        pods: Collection[int],
        until: int,
        *,
        hidden: Collection[int] = (),
        accesses: Accesses | None = None,
    ) -> None:
        """`hidden`: more Pods, of which nothing but their names is loaded."""
        self._graph = graph
        self._connection = graph.connection
        self._until = until
        self._steps = LineageQueries(graph.connection)
        self._reads = ReadOrigins(graph, self._steps)
        self._volumes = Volumes(graph, self._steps, accesses=accesses)
        self._hidden = hidden
        self._rows = {row[0]: row for row in self._connection.rows_in(_PODS, {*pods, *hidden})}
        self._key_of = {Uid(row[1]): key for key, row in self._rows.items()}
        self._loaded: set[int] = set(hidden)
        self._inputs: dict[int, list[FoundVersion]] = defaultdict(list)
        self._outputs: dict[int, list[tuple[MadeVersion, Version]]] = defaultdict(list)
        self._mounted: dict[int, dict[Locator, None]] = defaultdict(dict)
        self._peers: dict[int, tuple[Peer, ...]] = {}
        self._images: dict[int, dict[str, str]] = {}
        self._touches: dict[int, dict[Touch, None]] = defaultdict(dict)
        self._wanted: list[FoundVersion] = []
        self._wanted_volumes: list[Locator] = []
        self._named: dict[Locator, Volume] = {}
        """The volumes that a Pod or the target names."""
        self._stored: set[bytes] = set()
        """The digests of bytes that a witness of another Pod put into the store."""

    def load(self, pods: Iterable[int]) -> None:
        """Load what these Pods read and left."""
        pods = self._rows.keys() & set(pods)
        self._loaded |= pods
        containers = load_containers(self._graph, pods)
        pod_of = {key: pod for key, (pod, _) in containers.items()}
        uses = [
            edge
            for edge in (*self._steps.uses(pod_of, owned=True), *self._steps.moved(pod_of))
            if edge.how != "exec" and edge.at <= self._until
        ]
        products = self._steps.products(pod_of)
        versions = self._steps.versions({edge.version for edge in (*uses, *products)})
        self._load_inputs(pod_of, uses, versions)
        self._load_outputs(pod_of, products, versions)
        connections = (
            Connected(pod_of[edge.activity], edge.activity, edge.at, place)
            for edge in uses
            if (place := versions[edge.version].locator).startswith(PEERS)
        )
        self._peers |= load_peers(self._graph, self._reads, connections)
        self._images |= load_images(self._graph, containers)
        for touch in find_touches(self._graph, pod_of):
            self._touches[touch.pod][Touch(how=touch.how, by=touch.by, at=touch.at)] = None

    def load_needed(self, target: Target, walk: AncestorWalk) -> None:
        """Load the Pods that a plan may run, and of the others what a plan by volume needs."""
        for pod, volumes in walk.mounted.items():
            self._mounted[pod].update(dict.fromkeys(volumes))
            self._named.update(volumes)
        needed = NeededPods(self._graph, self._key_of, self._list_writing_pods)
        needed.add(dict.fromkeys(self._hidden, ()))
        waiting = sorted(self._rows.keys() - self._loaded, key=self._started)
        if target.kind != "version":
            pods = {row[0] for row in self._connection.rows_in(_EXECUTION, target.keys)}
            self._load_into(needed, pods)
        self.load_target(target)
        needed.add({TARGET: self._wanted})
        more = 1
        while pods := needed.find_missing():
            # Who made what these Pods read mostly ran shortly before them. A chain of Pods would
            # take a round for each of them, so each round loads twice as many earlier ones.
            earlier = bisect_right(waiting, max(map(self._started, pods)), key=self._started)
            self._load_into(needed, pods.union(waiting[max(earlier - more, 0) : earlier]))
            waiting = [pod for pod in waiting if pod not in self._loaded]
            more *= 2
        self._keep_objects(needed.list_spare(self._rows), walk.objects)

    def _keep_objects(self, spare: Collection[int], objects: Mapping[int, Collection[int]]) -> None:
        """Of Pods that no plan runs, only the objects that they read: what a caller gets must not
        depend on how many Pods a round loaded."""
        for pod in spare:
            self._inputs.pop(pod, None)
            self._outputs.pop(pod, None)
        read = {pod: objects[pod] for pod in spare if pod in objects}
        versions = self._steps.versions({key for keys in read.values() for key in keys})
        self._add_inputs({pod: {key: versions[key] for key in keys} for pod, keys in read.items()})

    def _load_into(self, needed: NeededPods, pods: Iterable[int]) -> None:
        fresh = self._rows.keys() & set(pods) - self._loaded
        self.load(fresh)
        needed.add({pod: self._inputs.get(pod, ()) for pod in fresh})

    def _list_writing_pods(self, locator: Locator) -> list[int] | None:
        volume = self._named.get(locator)
        if volume is None:
            return None
        return [access.pod for access in self._volumes.writers(volume, before=FOREVER)]

    def _started(self, pod: int) -> int:
        return int(self._rows[pod][_STARTED])

    def build(self, target: str) -> Ancestry:
        pods = [
            AncestorPod(
                uid=Uid(row[1]),
                namespace=str(row[2] or "").partition("/")[0],
                name=str(row[2] or "").partition("/")[2],
                started=row[3],
                ended=row[5],
                status=row[6],
                node=row[4],
                images=self._images.get(key, {}),
                inputs=tuple(self._inputs.get(key, ())),
                outputs=tuple(made for made, _ in self._outputs.get(key, ())),
                volumes=tuple(self._mounted.get(key, ())),
                touched=tuple(self._touches.get(key, ())),
                peers=self._peers.get(key, ()),
            )
            for key, row in self._rows.items()
        ]
        return Ancestry(
            target=target,
            wanted=tuple(self._wanted),
            pods=tuple(sorted(pods, key=lambda pod: (pod.started, pod.uid))),
            volumes=tuple(self._list_writers(volume) for volume in self._named.values()),
            wanted_volumes=tuple(self._wanted_volumes),
        )

    def _load_inputs(
        self, pod_of: Mapping[int, int], uses: list[Edge], versions: Mapping[int, Version]
    ) -> None:
        """What each Pod read, and the volumes it had."""
        watched = self._volumes.watched(pod_of)
        read: dict[int, dict[int, Version]] = defaultdict(dict)
        self._volumes.times(pod_of)
        for edge in uses:
            version, pod = versions[edge.version], pod_of[edge.activity]
            if is_whole(version):
                volume = self._volumes.accessed(edge, version)
                self._mounted[pod][volume.locator] = None
                self._named[volume.locator] = volume
                if version.location not in watched[edge.activity]:
                    whole = FoundVersion(locator=volume.locator, inferred=True)
                    self._inputs[pod].append(whole)
            elif not version.locator.startswith(PEERS):
                read[pod][version.key] = version
        self._add_inputs(read)

    def _add_inputs(self, read: Mapping[int, Mapping[int, Version]]) -> None:
        """Add what these Pods found, without what they made themselves."""
        described = self._describe([one for seen in read.values() for one in seen.values()])
        for pod, seen in read.items():
            for key, version in seen.items():
                found, origin = described[key]
                if not _is_made_by(version, pod) and not _is_made_by(origin, pod):
                    self._inputs[pod].append(found)

    def _describe(self, versions: Collection[Version]) -> dict[int, tuple[FoundVersion, Version]]:
        """Each of these with its origin."""
        origins = self._reads.find(versions)
        loaded = self._steps.versions(origin.key for origin in origins.values())
        self._find_stored([(one, loaded[origins[one.key].key]) for one in versions])
        extra = self._load_bytes((*versions, *loaded.values()))
        return {
            one.key: (
                self._describe_found(one, origins[one.key], loaded[origins[one.key].key], extra),
                loaded[origins[one.key].key],
            )
            for one in versions
        }

    def _find_stored(self, read: Iterable[tuple[Version, Version]]) -> None:
        """Of bytes that no witness of these reads stored: whether another one did."""
        missing = {
            version.digest if version.digest is not None else origin.digest
            for version, origin in read
            if not version.stored and not origin.stored
        }
        missing.discard(None)
        rows = self._connection.rows_in(_STORED, missing)
        self._stored |= {bytes(digest) for digest, pod in rows if pod in self._rows}

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
            stored=bool(version.stored or made.stored or has_bytes.digest in self._stored),
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
        self, pod_of: Mapping[int, int], products: list[Edge], versions: Mapping[int, Version]
    ) -> None:
        """The last version of each file and object that each Pod left."""
        rows = self._connection.rows_in(_GONE, pod_of, before=(self._until,))
        gone = {row[0] for row in rows}
        last: dict[tuple[int, Locator], Version] = {}
        for edge in products:
            version = versions[edge.version]
            place = pod_of[edge.activity], version.locator
            if not is_whole(version) and version.at <= self._until:
                known = last.get(place)
                if known is None or version.ordinal > known.ordinal:
                    last[place] = version
        left = {place: version for place, version in last.items() if version.key not in gone}
        extra = self._load_bytes(left.values())
        for (pod, locator), version in sorted(left.items()):
            found = extra.get(version.key)
            made = MadeVersion(
                locator=locator,
                digest=digest_text(version.digest),
                stored=bool(version.stored),
                size=version.size or 0,
                source=found.source if found else None,
            )
            self._outputs[pod].append((made, version))

    def load_target(self, target: Target) -> None:
        """Load what the target names; of a Pod, what it left, once that is loaded."""
        if target.kind == "volume" and target.locator is not None:
            self._wanted = [FoundVersion(locator=target.locator, inferred=True)]
            self._wanted_volumes = [target.locator]
        else:
            self._wanted = self._describe_wanted(target)
            places = (volume_of(found.locator) for found in self._wanted)
            self._wanted_volumes = [*dict.fromkeys(filter(None, places))]
        for place in self._wanted_volumes:
            self._named[place] = self._volumes.volume(place)

    def _describe_wanted(self, target: Target) -> list[FoundVersion]:
        keys: Iterable[int] = target.keys
        if target.kind != "version":
            pods = {row[0] for row in self._connection.rows_in(_EXECUTION, target.keys)}
            keys = [version.key for pod in pods for _, version in self._outputs.get(pod, ())]
        versions = self._steps.versions(keys)
        return [found for found, _ in self._describe(versions.values()).values()]

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

    def _load_bytes(self, versions: Iterable[Version]) -> dict[int, _Bytes]:
        """Of those that may be restored: from the store, or from a bucket."""
        keys = {
            one.key
            for one in versions
            if one.stored or one.digest in self._stored or one.locator.startswith(OBJECT_STORE)
        }
        rows: list[tuple[Any, ...]] = self._connection.rows_in(_BYTES, keys)
        return {key: _Bytes(mtime, source) for key, mtime, source in rows}
