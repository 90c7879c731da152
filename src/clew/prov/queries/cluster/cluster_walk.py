"""What a walk through the graph follows in a cluster beyond edges that are stored: volumes as a
whole (rule 3), requests that touched a Pod by hand, and connections between Pods.

It adds to the nodes and edges of a walk (`lineage.walk`), and says where the walk goes on. All its
edges are inferred. A volume is walked as often as its time bound moves, which is at most once for
each level of the walk.
"""

from collections.abc import Collection, Iterable
from typing import Final, Protocol

from clew.documents.ids import Locator
from clew.prov.graph import Graph
from clew.prov.queries.cluster.cluster_nodes import find_touches
from clew.prov.queries.cluster.connections import NETWORK, find_clients, find_servers
from clew.prov.queries.cluster.endpoints import Endpoints
from clew.prov.queries.cluster.read_origins import ReadOrigins
from clew.prov.queries.cluster.volume_accesses import NOBODY, Access, Volume, Volumes, is_whole
from clew.prov.queries.lineage.lineage_sql import FOREVER, Edge, LineageQueries, Version

SAME_VOLUME: Final = "same_volume"
"""The kind of an edge between a file and the volume it is on, where no witness saw who made it or
who read it."""
MOUNT: Final = "mount"
"""How a container uses and makes a volume as a whole."""
_FILE = 0
"""Stands for a file among containers: no hash is 0."""


class Join(Protocol):
    def __call__(self, start: int, end: int, kind: str, **attributes: str | bool) -> None: ...


class ClusterWalk:
    """The part of one walk that is in a cluster."""

    def __init__(
        self,
        graph: Graph,
        steps: LineageQueries,
        *,
        up: bool,
        until: int,
        ignore_watched: bool,
        versions: dict[int, Version],
        join: Join,
    ) -> None:
        """`versions`: those of the walk, to which volumes are added. `until`: nothing later is
        followed. `ignore_watched`: as if no witness had seen any access to a file."""
        self._graph = graph
        self._steps = steps
        self._up = up
        self._until = until
        self._versions = versions
        self._join = join
        self.volumes = Volumes(graph, steps, ignore_watched=ignore_watched)
        self._bounds: dict[int, int] = {}
        """By volume, the time by which its writers started, or after which its readers ended."""
        self._entered: dict[int, set[int]] = {}
        """By volume, the containers through which the walk came to it; 0 is a file."""
        self._left: set[tuple[int, int]] = set()
        """The containers to which the walk went on from a volume."""
        self._endpoints = Endpoints(graph)
        self.reads = ReadOrigins(graph, steps)
        self.truncated = False

    def volume(self, key: int) -> Volume | None:
        return self.volumes.get(key)

    def times(self, activities: Iterable[int]) -> dict[int, int]:
        """When containers started. Kubernetes knows the second, so this is the end of it: what a
        container used at its start may be later than what it wrote then."""
        known = self.volumes.times(activities)
        return {key: known[key][0] for key in activities if key in known}

    def start(self, locator: Locator) -> int:
        """Begin with a volume as a whole, as it is at the end."""
        volume = self.volumes.volume(locator)
        self.enter(volume, self._until if self._up else -1)
        return volume.key

    def enter(self, volume: Volume, bound: int) -> bool:
        """Take a volume for one from which the walk goes on to all its containers; whether it has
        not done so, or not as far."""
        self._entered.setdefault(volume.key, set()).add(_FILE)
        return self._enter(volume, bound)

    def follow_files(self, keys: Iterable[int]) -> set[int]:
        """Up: the volumes of files without a known maker. Down: the volumes from which
        others may have read these files."""
        fresh = set()
        for version in [self._versions[key] for key in keys]:
            if self._up and not version.found:
                continue
            volume = self.volumes.of_file(version.locator, unwatched=self._up)
            if volume is None or version.maker == NOBODY:
                continue
            if self._up and self.volumes.has_writers(volume, before=version.at, but=_FILE):
                self._join(volume.key, version.key, SAME_VOLUME, inferred=True)
            elif not self._up and self._is_read(volume, version.at):
                self._join(version.key, volume.key, SAME_VOLUME, inferred=True)
            else:
                continue
            self._entered.setdefault(volume.key, set()).add(_FILE)
            if self._enter(volume, version.at):
                fresh.add(volume.key)
        return fresh

    def enter_volumes(
        self, edges: Collection[Edge], loaded: dict[int, Version], activities: dict[int, int]
    ) -> tuple[list[Edge], set[int]]:
        """The edges that are not of volumes as a whole; and the volumes to go on with."""
        whole = [edge for edge in edges if is_whole(loaded[edge.version])]
        others = [edge for edge in edges if not is_whole(loaded[edge.version])]
        enter = self._enter_read if self._up else self._enter_written
        return others, enter(whole, loaded, activities)

    def _enter_read(
        self, edges: Collection[Edge], loaded: dict[int, Version], activities: dict[int, int]
    ) -> set[int]:
        """The volumes that these containers read as a whole, if others wrote there before."""
        fresh = set()
        starts = self.times({edge.activity for edge in edges})
        for edge, end in self.volumes.reads(edges, loaded):
            activity, volume = edge.activity, self.volumes.accessed(edge, loaded[edge.version])
            bound = min(max(activities[activity], starts.get(activity, 0)), end)
            if (activity, volume.key) in self._left:
                continue  # what it read of the volume, the walk follows already
            if self.volumes.has_writers(volume, before=bound, but=activity):
                self._join(volume.key, activity, "used", how=MOUNT, inferred=True)
                self._entered.setdefault(volume.key, set()).add(activity)
                if self._enter(volume, bound):
                    fresh.add(volume.key)
        return fresh

    def _enter_written(
        self, edges: Collection[Edge], loaded: dict[int, Version], activities: dict[int, int]
    ) -> set[int]:
        """The volumes that these containers had writable, if others read there later."""
        fresh = set()
        watched = self.volumes.watched({edge.activity for edge in edges})
        starts = self.times({edge.activity for edge in edges})
        for edge in edges:
            bound = max(activities[edge.activity], starts.get(edge.activity, -1))
            version = loaded[edge.version]
            volume = self.volumes.accessed(edge, version)
            if (edge.activity, volume.key) in self._left:
                continue
            kinds = [volume]
            if version.location not in watched[edge.activity]:
                kinds.append(self.volumes.volume(volume.locator, unwatched=True))
            for one in kinds:
                fresh |= self._leave(edge.activity, one, bound)
        return fresh

    def _leave(self, activity: int, volume: Volume, bound: int) -> set[int]:
        """Continue from a container to a volume, if another container can have read what it wrote
        there."""
        if not self._is_read(volume, bound, but=activity):
            return set()
        self._join(activity, volume.key, "generated", how=MOUNT, inferred=True)
        self._entered.setdefault(volume.key, set()).add(activity)
        return {volume.key} if self._enter(volume, bound) else set()

    def _is_read(self, volume: Volume, after: int, *, but: int = _FILE) -> bool:
        return self.volumes.has_readers(volume, after=after, watched=volume.unwatched, but=but)

    def makers(self, keys: Iterable[int], *, room: int) -> dict[int, int]:
        """The containers that may have written what is on these volumes, and their bounds; the last
        ones, if there are more than `room`."""
        bounds: dict[int, int] = {}
        for key in keys:
            if volume := self.volumes.get(key):
                bound = self._bounds[key]
                writers = self.volumes.writers(volume, before=bound, last=room + 1)
                for access in self._take(writers[::-1], room):
                    if self._is_other(key, access.activity):
                        self._join(access.activity, key, "generated", how=MOUNT, inferred=True)
                        self._left.add((access.activity, key))
                        bounds[access.activity] = max(bounds.get(access.activity, bound), bound)
        return bounds

    def users(self, keys: Iterable[int], *, room: int) -> tuple[dict[int, int], set[int]]:
        """The containers that may have read what is on these volumes, and their bounds; and the
        files that they found there and that have no known maker."""
        bounds: dict[int, int] = {}
        files: set[int] = set()
        for key in keys:
            volume = self.volumes.get(key)
            if volume is None:
                continue
            bound = self._bounds[key]
            if volume.unwatched:
                files |= self._find_unmade(volume, bound)
                continue
            readers = self.volumes.readers(volume, after=bound, most=room + 1)
            for access in self._take(readers, room):
                if access.started <= self._until and self._is_other(key, access.activity):
                    self._join(key, access.activity, "used", how=MOUNT, inferred=True)
                    self._left.add((access.activity, key))
                    bounds[access.activity] = min(bounds.get(access.activity, bound), bound)
        return bounds, files

    def find_touches(self, activities: dict[int, int]) -> set[int]:
        """The requests' versions of Pods that were touched by hand while these containers ran."""
        fresh = set()
        touches = find_touches(self._graph, activities)
        loaded = self._steps.versions({touch.version for touch in touches} - self._versions.keys())
        for touch in touches:
            if touch.at <= activities[touch.activity]:
                if touch.version in loaded:
                    self._versions[touch.version] = loaded[touch.version]
                    fresh.add(touch.version)
                self._join(touch.version, touch.activity, "used", how=touch.how, inferred=True)
        return fresh

    def follow_connections(self, activities: dict[int, int]) -> dict[int, int]:
        """The containers that these were connected to, and their bounds: a connection may go on
        after it was opened."""
        find = find_servers if self._up else find_clients
        bounds: dict[int, int] = {}
        connections = find(self._graph, activities, self._endpoints)
        self.truncated = self.truncated or connections.truncated
        for server, client, at in connections.found:
            near, far = (client, server) if self._up else (server, client)
            if at > self._until or (self._up and at > activities[near]):
                continue
            self._join(server, client, "informed", via=NETWORK, inferred=True)
            bound = activities[near] if self._up else at
            known = bounds.get(far, bound)
            bounds[far] = max(known, bound) if self._up else min(known, bound)
        return bounds

    def _find_unmade(self, volume: Volume, after: int) -> set[int]:
        found = self.volumes.readers(volume, after=after, watched=True)
        readers = {access.activity for access in found}
        uses = self._steps.uses(readers, owned=True)
        on_volume = [
            version
            for version in self._steps.versions({edge.version for edge in uses}).values()
            if version.found
            and after < version.at <= self._until
            and self.volumes.of_file(version.locator, unwatched=True) == volume
        ]
        origins = self.reads.find(on_volume)
        unmade = {v.key: v for v in on_volume if origins[v.key].key == v.key}
        for key, version in unmade.items():
            self._versions.setdefault(key, version)
            self._join(volume.key, key, SAME_VOLUME, inferred=True)
        return set(unmade)

    def _take(self, accesses: list[Access], room: int) -> list[Access]:
        self.truncated = self.truncated or len(accesses) > room
        return accesses[:room]

    def _is_other(self, volume: int, activity: int) -> bool:
        """Whether the walk came to a volume from any other container, or from a file."""
        entered = self._entered.get(volume)
        return entered is None or entered != {activity}

    def _enter(self, volume: Volume, bound: int) -> bool:
        """Whether the walk has to go on from the volume: it has not yet, or not as far."""
        self._versions[volume.key] = volume.version
        known = self._bounds.get(volume.key)
        if known is not None and (bound <= known if self._up else bound >= known):
            return False
        self._bounds[volume.key] = min(bound, FOREVER)
        return True
