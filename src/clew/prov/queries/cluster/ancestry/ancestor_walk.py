"""The walk from a target to all Pods that may be needed to make it again.

It is that of `clew trace`, as if nothing were watched, with some differences. A Pod that runs
again reads all it read, so time does not bound the walk through a Pod, and a Pod that only moved a
file moves it again. What Pods read is followed
for all of them at once: a file on a volume leads to one of the containers that had the volume
writable, which the walk follows anyway, so only files that somebody else may have made are looked
at one by one. A copy of a file, known by equal bytes alone, is not followed from such a file: its
maker cannot make the file again. And the walk ends at Pods that the caller may not see.
"""

from collections.abc import Collection, Iterable

from clew.documents.ids import Locator
from clew.prov.cluster.facets import namespace_of_name
from clew.prov.graph import Graph
from clew.prov.queries.cluster.cluster_walk import ClusterWalk
from clew.prov.queries.cluster.names import CLAIM_LOCATOR, IMAGE, OBJECT_SCHEMES
from clew.prov.queries.cluster.volume_accesses import Accesses, Volume
from clew.prov.queries.formats import NETWORK
from clew.prov.queries.lineage.lineage_sql import FOREVER
from clew.prov.queries.lineage.walk import Walk

MAX_NODES = 1_000_000
"""Nodes after which the walk stops."""
PEERS = (*NETWORK, "service://", "pod://", "ip://")
OBJECT_STORE = "s3://"

_MADE_BY_NO_POD = (IMAGE, *OBJECT_SCHEMES, *PEERS)
_PODS = """
SELECT s.id, s.execution, p.name FROM started s JOIN started p ON p.id = s.execution
WHERE s.id IN ({}) AND p.kind = 'pod'
"""
_ENDS = f"""
SELECT s.id, coalesce((SELECT min(e.at) FROM ended e WHERE e.activity = s.id), {FOREVER})
FROM started s WHERE s.id IN ({{}})
"""  # noqa: S608
_BUT_FILES = f"""
SELECT v.execution, v.id, v.at, l.locator FROM version v JOIN location l ON l.id = v.location
WHERE v.at <= ? AND v.execution IN ({{}}) AND v.maker = v.execution
AND substr(l.locator, 1, {len(IMAGE)}) <> '{IMAGE}'
AND (substr(l.locator, 1, 6) <> 'pvc://' OR replace(l.locator, '@', '') = l.locator)
"""  # noqa: S608
_MAKERS = """
SELECT DISTINCT g.execution FROM (
  SELECT v.location AS location, max(v.at) AS at FROM version v
  WHERE v.at <= ? AND v.execution IN ({}) AND v.maker = v.execution GROUP BY v.location
) AS f JOIN version g ON g.location = f.location AND g.at <= f.at AND g.maker <> g.execution
"""
_MADE = "SELECT location FROM version WHERE execution IN ({}) AND maker <> execution"
_FOUND = """
SELECT id, execution, location FROM version
WHERE at <= ? AND execution IN ({}) AND maker = execution
"""


class AncestorWalk(Walk):
    def __init__(self, graph: Graph, *, until: int) -> None:
        """`until`: nothing later is followed."""
        super().__init__(
            graph, up=True, everything=True, limit=MAX_NODES, until=until, ignore_watched=True
        )
        self.mounted: dict[int, dict[Locator, Volume]] = {}
        """By Pod that was reached, the volumes that it had."""
        self.hidden: set[int] = set()
        """The Pods that were reached, and that the caller may not see."""
        self.objects: dict[int, set[int]] = {}
        """By Pod, the versions of objects that it read."""
        self._pod_of: dict[int, int | None] = {}
        self._writers: set[int] = set()
        """The Pods that were reached, and those that wrote to a volume which was."""

    @property
    def accesses(self) -> Accesses | None:
        """The accesses to volumes that it found."""
        return None if self._cluster is None else self._cluster.volumes.accesses

    def _select_further(self, activities: dict[int, int]) -> dict[int, int]:
        pod_of = self._find_pods(activities)
        return super()._select_further(
            {
                key: at if pod_of[key] is None else self._until
                for key, at in activities.items()
                if pod_of[key] not in self.hidden
            }
        )

    def _makers(self, versions: set[int]) -> tuple[dict[int, int], set[int]]:
        """Also the Pods that only moved them: who runs again moves them again."""
        bounds, moved = super()._makers(versions)
        makers = {edge.activity: edge.at for edge in self._steps.makers(versions)}
        pod_of = self._find_pods(makers)
        movers = {key: at for key, at in makers.items() if pod_of[key] is not None}
        return movers | bounds, moved

    def _inputs(self, activities: dict[int, int]) -> set[int]:
        pod_of = self._find_pods(activities)
        others = {key: at for key, at in activities.items() if pod_of[key] is None}
        pods = {pod for key in activities if (pod := pod_of[key]) is not None}
        fresh = super()._inputs(others) if others else set()
        if self._cluster is not None and (pods := pods - self.mounted.keys()):
            fresh |= self._follow_pods(self._cluster, pods)
        return fresh

    def _find_pods(self, activities: Iterable[int]) -> dict[int, int | None]:
        """The Pod of each activity; None: it is of no Pod."""
        missing = [key for key in activities if key not in self._pod_of]
        self._pod_of |= dict.fromkeys(missing)
        for key, pod, name in self._graph.connection.rows_in(_PODS, missing):
            self._pod_of[key] = pod
            namespace = namespace_of_name(name)
            if namespace is not None and not self._graph.may_read(namespace):
                self.hidden.add(pod)
        return self._pod_of

    def _follow_pods(self, cluster: ClusterWalk, pods: set[int]) -> set[int]:
        """The volumes and versions that these Pods read."""
        connection = self._graph.connection
        ends: dict[int, int] = dict(connection.rows_in(_ENDS, pods))
        bounds: dict[Volume, int] = {}
        apart: set[int] = set()
        self.mounted.update((pod, {}) for pod in pods)
        for pod, key, at, locator in connection.rows_in(_BUT_FILES, pods, before=(self._until,)):
            if CLAIM_LOCATOR.fullmatch(locator):
                volume = cluster.volumes.at(locator, at)
                self.mounted[pod][volume.locator] = volume
                bounds[volume] = max(bounds.get(volume, 0), min(ends[pod], self._until))
            elif not locator.startswith(_MADE_BY_NO_POD):
                apart.add(key)
                if locator.startswith(OBJECT_STORE):
                    self.objects.setdefault(pod, set()).add(key)
        fresh = {volume.key for volume, bound in bounds.items() if cluster.enter(volume, bound)}
        self._writers |= pods
        for volume, bound in bounds.items():
            self._writers |= {one.pod for one in cluster.volumes.writers(volume, before=bound)}
        return fresh | self._find_fresh_origins(apart | self._find_made_by_others(pods))

    def _find_made_by_others(self, pods: Collection[int]) -> set[int]:
        """The versions that may have been made by an execution that the walk does not come to by a
        volume as a whole."""
        connection, before = self._graph.connection, (self._until,)
        made = {maker for (maker,) in connection.rows_in(_MAKERS, pods, before=before)}
        others = made - self._writers
        unknown = {pod for pod in pods if not self.mounted[pod]}  # only their files are known
        places = {place for (place,) in connection.rows_in(_MADE, others)}
        found = connection.rows_in(_FOUND, pods if others else unknown, before=before)
        return {key for key, pod, place in found if pod in unknown or place in places}

    def _find_fresh_origins(self, keys: Collection[int]) -> set[int]:
        origins = {one.key for one in self._find_origins(self._steps.versions(keys)).values()}
        fresh = origins - self._versions.keys()
        self._load(fresh)
        return fresh
