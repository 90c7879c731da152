"""The walk through the graph that lineage consists of.

A walk goes level by level: from versions to the processes that made (or used) them, and on to
what those used (or made). One level is one `depth`; processes joined by pipes count as one
step. A process is walked through only as far as time allows: what it used after a file was
finished is not in that file. Each version and process is walked once, so the walk ends on any
graph.
"""

from collections.abc import Iterable

from clew.prov.event_numbers import MOVES
from clew.prov.graph import Graph
from clew.prov.queries.cluster.cluster_walk import ClusterWalk
from clew.prov.queries.cluster.names import has_cluster
from clew.prov.queries.cluster.read_origins import Origin
from clew.prov.queries.lineage.content_links import (
    SAME_CONTENT,
    ContentLinks,
    Link,
    find_link,
)
from clew.prov.queries.lineage.lineage_sql import FOREVER, LineageQueries, Version
from clew.prov.queries.lineage.lineage_sql import Edge as Step
from clew.prov.queries.lineage.nodes import is_of_program, version_ref
from clew.prov.queries.lineage.process_flows import ProcessFlows
from clew.prov.queries.lineage.walk_description import (
    UNRECORDED,
    Reached,
    Walked,
    describe_walk,
)
from clew.prov.queries.targets import Target

LIMIT = 20_000
"""Nodes after which a walk stops and says so."""

_PROCESSES = "SELECT id FROM started WHERE execution = ? AND id <> execution"


class Walk:
    """One walk, in one direction."""

    def __init__(
        self,
        graph: Graph,
        *,
        up: bool,
        everything: bool,
        limit: int,
        until: int = FOREVER,
        ignore_watched: bool = False,
    ) -> None:
        """`until`: nothing that was used or made later is followed. `ignore_watched`: containers
        read volumes as a whole, as if no witness had seen their files."""
        self._graph = graph
        self._steps = LineageQueries(graph.connection)
        self._content_links = ContentLinks(graph, self._steps)
        self._up = up
        self._everything = everything
        self._limit = limit
        self._versions: dict[int, Version] = {}
        self._targets: list[int] = []
        self._reached: dict[int, int] = {}  # activity → the time its walk is bounded by
        self._hidden: dict[int, set[int]] = {}
        self._edges: dict[tuple[int, int, str], dict[str, str | bool]] = {}
        self._links: dict[int, Link] = {}  # found version → where it may come from
        self._truncated = False
        self._flows = ProcessFlows(self._steps, up=up, everything=everything, join=self._join)
        self._until = until
        self._cluster = (
            ClusterWalk(
                graph,
                self._steps,
                up=up,
                until=until,
                ignore_watched=ignore_watched,
                versions=self._versions,
                join=self._join,
            )
            if has_cluster(graph)
            else None
        )

    def from_target(self, target: Target, depth: int | None) -> None:
        if target.kind == "version":
            self._from_versions(target.keys, depth)
        elif target.kind == "file" and self._up:
            self._from_unrecorded(target, depth)
        elif target.kind == "volume" and self._cluster and target.locator is not None:
            self._targets = [self._cluster.start(target.locator)]
            self._walk(set(self._targets), {}, depth)
        elif target.kind == "process":
            self._from_activities(target.keys, depth)
        elif target.kind == "execution":
            rows = (
                self._graph.connection.rows(_PROCESSES, (key,)) for key in reversed(target.keys)
            )
            self._from_activities([row[0] for found in rows for row in found], depth)

    def add_neighbours(self, versions: Iterable[int], activities: Iterable[int]) -> None:
        """One step from each of these, however far they are from the target."""
        found = self._find_origins(self._steps.versions(versions))
        origins = {origin.key for origin in found.values()}
        self._load(origins - self._versions.keys())
        reached = dict.fromkeys(activities, FOREVER if self._up else -1)
        if origins:
            self._follow_links(origins & self._versions.keys())
            (self._makers if self._up else self._users)(origins & self._versions.keys())
        if reached:
            self._reached.update(reached)
            self._flows.follow(reached)
            (self._inputs if self._up else self._outputs)(reached)

    def _from_versions(self, keys: tuple[int, ...], depth: int | None) -> None:
        origins = self._find_origins(self._steps.versions(keys))
        self._targets = list(dict.fromkeys(origins[key].key for key in keys if key in origins))
        self._load(self._targets)
        self._walk(set(self._targets), {}, depth)

    def _from_unrecorded(self, target: Target, depth: int | None) -> None:
        assert target.locator is not None and target.digest is not None
        link = find_link(self._graph, target.locator, target.digest)
        if link is not None:
            self._links[UNRECORDED] = link
            self._join(link.best, UNRECORDED, SAME_CONTENT, **link.attributes)
            self._load([link.best])
            self._walk({link.best}, {}, depth)

    def _from_activities(self, keys: list[int] | tuple[int, ...], depth: int | None) -> None:
        self._targets = list(keys)
        bound = FOREVER if self._up else -1
        self._walk(set(), dict.fromkeys(keys, bound), depth)

    def _walk(self, versions: set[int], activities: dict[int, int], depth: int | None) -> None:
        level = 0
        while (versions or activities) and (depth is None or level < depth):
            if len(self._versions) + len(self._reached) > self._limit:
                self._truncated = True
                return
            moved: set[int] = set()
            if versions:
                versions |= self._follow_links(versions)
                if self._cluster:
                    versions |= self._cluster.follow_files(versions)
                bounds, moved = self._makers(versions) if self._up else self._users(versions)
                activities = self._within_limit(bounds)
            versions = self._expand(activities) | moved
            activities = {}
            level += 1

    def _follow_links(self, versions: set[int]) -> set[int]:
        """The versions that have the same bytes as these, before or after them."""
        followed: set[int] = set()
        while versions:
            near = [self._versions[key] for key in versions]
            if self._up:
                links = self._content_links.before(near)
                ends = [(link.best, key) for key, link in links.items()]
                self._links |= links
                self._load({start for start, _ in ends} - self._versions.keys())
            else:
                later = self._content_links.after(near)
                ends = [(start, version.key) for start, version, _ in later]
                self._links |= {version.key: link for _, version, link in later}
                self._versions |= {version.key: version for _, version, _ in later}
            for start, end in ends:
                self._join(start, end, SAME_CONTENT, **self._links[end].attributes)
            versions = {pair[0 if self._up else 1] for pair in ends} - versions - followed
            followed |= versions
        return followed

    def _within_limit(self, activities: dict[int, int]) -> dict[int, int]:
        room = self._room()
        if len(activities) <= room:
            return activities
        self._truncated = True
        return dict(list(activities.items())[:room])

    def _room(self) -> int:
        """How many more nodes the walk may have."""
        return max(self._limit - len(self._versions) - len(self._reached), 1)

    def _makers(self, versions: set[int]) -> tuple[dict[int, int], set[int]]:
        """Who made these versions, and the times bounding them; and what was only moved here.

        What a process moved comes from the old place, whatever else that process had read;
        unless it wrote the old one itself: then it is its work under another name.
        """
        edges = self._steps.makers(versions)
        movers = {edge.activity for edge in edges if edge.how in MOVES}
        sources: dict[tuple[int, int, str], list[Step]] = {}
        for edge in self._steps.moved(movers):
            sources.setdefault((edge.activity, edge.at, edge.how), []).append(edge)
        loaded = self._steps.versions({e.version for found in sources.values() for e in found})
        bounds: dict[int, int] = {}
        moved: list[Step] = []
        for edge in edges:
            self._join(edge.activity, edge.version, "generated", how=edge.how)
            found = sources.get((edge.activity, edge.at, edge.how), [])
            if found and all(loaded[e.version].maker != edge.activity for e in found):
                moved += found
            else:
                bounds[edge.activity] = max(bounds.get(edge.activity, edge.at), edge.at)
        if self._cluster:
            for activity, at in self._cluster.makers(versions, room=self._room()).items():
                bounds[activity] = max(bounds.get(activity, at), at)
        return bounds, self._draw_inputs(moved, loaded)

    def _users(self, versions: set[int]) -> tuple[dict[int, int], set[int]]:
        """Who used these versions, and the times bounding them; and where they were only moved."""
        again = self._find_again(versions)
        origin = {key: key for key in versions}
        origin.update({later.key: first for first, found in again.items() for later in found})
        inferred = {later.key for found in again.values() for later in found if later.inferred}
        bounds: dict[int, int] = {}
        movers: dict[int, set[tuple[int, str]]] = {}
        users = self._steps.users(origin)
        starts = self._cluster.times({edge.activity for edge in users}) if self._cluster else {}
        for edge in users:
            first = origin[edge.version]
            if self._versions[first].maker == edge.activity or edge.at > self._until:
                continue
            self._join(first, edge.activity, "used", how=edge.how, **_mark(edge.version, inferred))
            if edge.how in MOVES:
                movers.setdefault(edge.activity, set()).add((edge.at, edge.how))
            else:
                at = -1 if edge.at <= starts.get(edge.activity, -1) else edge.at
                bounds[edge.activity] = min(bounds.get(edge.activity, at), at)
        files: set[int] = set()
        if self._cluster:
            readers, files = self._cluster.users(versions, room=self._room())
            for activity, at in readers.items():
                bounds[activity] = min(bounds.get(activity, at), at)
        products = self._steps.products(movers)
        return bounds, files | self._draw_outputs(
            [edge for edge in products if (edge.at, edge.how) in movers[edge.activity]]
        )

    def _expand(self, activities: dict[int, int]) -> set[int]:
        """Go through these activities, and those that pipes tie to them; the versions beyond."""
        gathered: dict[int, int] = {}
        while activities:
            fresh = self._select_further(activities)
            self._reached.update(fresh)
            gathered.update(fresh)
            activities = self._flows.follow(fresh)
            if self._cluster:
                for key, at in self._cluster.follow_connections(fresh).items():
                    activities[key] = (max if self._up else min)(at, activities.get(key, at))
        return self._inputs(gathered) if self._up else self._outputs(gathered)

    def _select_further(self, activities: dict[int, int]) -> dict[int, int]:
        """Those that the walk has not come to yet, or not as far."""
        return {
            key: at
            for key, at in activities.items()
            if self._is_further(at, self._reached.get(key))
        }

    def _is_further(self, at: int, known: int | None) -> bool:
        return known is None or (at > known if self._up else at < known)

    def _inputs(self, activities: dict[int, int]) -> set[int]:
        starts = self._cluster.times(activities) if self._cluster else {}
        edges = [
            edge
            for edge in self._steps.uses(activities, owned=self._everything)
            if edge.at <= max(activities[edge.activity], starts.get(edge.activity, 0))
        ]
        loaded = self._steps.versions({edge.version for edge in edges})
        foreign = [edge for edge in edges if loaded[edge.version].maker != edge.activity]
        fresh: set[int] = set()
        if self._cluster:
            foreign, fresh = self._cluster.enter_volumes(foreign, loaded, activities)
            fresh |= self._cluster.find_touches(activities)
        return fresh | self._draw_inputs(foreign, loaded)

    def _draw_inputs(self, edges: list[Step], loaded: dict[int, Version]) -> set[int]:
        origins = self._find_origins({e.version: loaded[e.version] for e in edges})
        loaded |= self._steps.versions({o.key for o in origins.values()} - loaded.keys())
        inferred = {key for key, origin in origins.items() if origin.inferred}
        fresh = set()
        for edge in edges:
            origin = loaded[origins[edge.version].key]
            if self._hide(edge.activity, origin) or origin.maker == edge.activity:
                continue
            if origin.key not in self._versions:
                self._versions[origin.key] = origin
                fresh.add(origin.key)
            attributes = {"how": edge.how, "version": version_ref(loaded[edge.version])}
            self._join(
                origin.key, edge.activity, "used", **attributes, **_mark(edge.version, inferred)
            )
        return fresh

    def _find_origins(self, versions: dict[int, Version]) -> dict[int, Origin]:
        """What each of these is: the version that was made, if it was found again."""
        if self._cluster:
            return self._cluster.reads.find(versions.values())
        found = self._steps.origins(versions)
        return {key: Origin(origin, inferred=False) for key, origin in found.items()}

    def _find_again(self, versions: set[int]) -> dict[int, list[Origin]]:
        """For each of these: the later versions that are the same thing, found."""
        again = self._steps.found_again(versions)
        found = {key: [Origin(later, inferred=False) for later in again[key]] for key in again}
        if self._cluster:
            near = [self._versions[key] for key in versions]
            for key, later in self._cluster.reads.found_again(near).items():
                found[key] = [*{one.key: one for one in (*found.get(key, ()), *later)}.values()]
        return found

    def _outputs(self, activities: dict[int, int]) -> set[int]:
        products = self._steps.products(activities)
        later = [edge for edge in products if edge.at >= activities[edge.activity]]
        fresh: set[int] = set()
        if self._cluster:
            loaded = self._steps.versions({edge.version for edge in later})
            later = [edge for edge in later if loaded[edge.version].at <= self._until]
            later, fresh = self._cluster.enter_volumes(later, loaded, activities)
        return fresh | self._draw_outputs(later)

    def _draw_outputs(self, edges: list[Step]) -> set[int]:
        loaded = self._steps.versions({edge.version for edge in edges})
        fresh = set()
        for edge in edges:
            version = loaded[edge.version]
            if self._hide(edge.activity, version):
                continue
            if version.key not in self._versions:
                self._versions[version.key] = version
                fresh.add(version.key)
            self._join(edge.activity, version.key, "generated", how=edge.how)
        return fresh

    def _hide(self, activity: int, version: Version) -> bool:
        """Whether it is an installed file: one of a package or the system that no recorded process
        made."""
        if self._everything:
            return False
        hidden = is_of_program(version)
        if hidden:
            self._hidden.setdefault(activity, set()).add(version.key)
        return hidden

    def _load(self, keys: Iterable[int]) -> None:
        self._versions.update(self._steps.versions(keys))

    def _join(self, start: int, end: int, kind: str, **attributes: str | bool) -> None:
        self._edges.setdefault((start, end, kind), attributes)

    def reached(self) -> Reached:
        """Everything that the walk reached."""
        return Reached(
            versions=self._versions,
            activities=self._reached,
            edges=self._edges,
            targets=self._targets,
            links=self._links,
            hidden=self._hidden,
            workers=self._flows.workers,
            cluster=self._cluster,
            counts_owned=self._up and not self._everything,
            truncated=self._truncated or (self._cluster is not None and self._cluster.truncated),
        )

    def collect(self, target: Target) -> Walked:
        """The same, in the words of documents."""
        return describe_walk(self._graph, self._steps, self.reached(), target)


def _mark(version: int, inferred: set[int]) -> dict[str, bool]:
    """What an edge says if it was inferred which version was read."""
    return {"inferred": True} if version in inferred else {}
