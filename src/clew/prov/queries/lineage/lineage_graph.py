"""The lineage of a target as a drawing that grows on demand.

The walk begins with the target, in one direction or both, and goes a few steps. What the user
expands is added step by step, and so is the way to another node; like nodes are grouped. The answer
also says how much more there is around each node, so that the user knows where to go on.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from clew.documents.ids import ExecutionId
from clew.documents.lineage.lineage import Edge, Node, PathsBetween
from clew.documents.lineage.lineage_graph import (
    DrawnPath,
    KindCount,
    LineageGraph,
    Mark,
    ObservationGap,
    Sides,
)
from clew.prov.cluster.activity_uids import POD
from clew.prov.graph import Graph
from clew.prov.queries.formats import path_fields
from clew.prov.queries.lineage.displayed_graph import (
    FITS,
    PART,
    Filters,
    Subgraph,
    draw,
    find_group_members,
    time_of,
)
from clew.prov.queries.lineage.lineage_sql import FOREVER, LineageQueries
from clew.prov.queries.lineage.paths_between import find_paths
from clew.prov.queries.lineage.walk import LIMIT, Walk
from clew.prov.queries.lineage.walk_description import Walked
from clew.prov.queries.targets import Target

DEPTH = 2
_GROUP = "group:"
_NEVER = datetime.min.replace(tzinfo=UTC)
_MAX_GAPS = 100
_MAX_PATH = 400
"""Nodes on ways between two things; of more, only a shortest way is drawn."""

Resolve = Callable[[str], Target | None]
"""The target that a node's id names; None if there is none any more."""


@dataclass(frozen=True)
class Request:
    """What to draw."""

    direction: Sides = "both"
    depth: int | None = DEPTH
    everything: bool = False
    before: Sequence[str] = ()
    """Nodes to go one step back from."""
    after: Sequence[str] = ()
    opened: Sequence[str] = ()
    """Any node of each group that is shown as its members."""
    path: tuple[str, str] | None = None
    grouped: bool = True
    filters: Filters = field(default_factory=Filters)
    until: int = FOREVER
    """Nothing that was used or made later is followed."""


@dataclass
class Collection:
    """The nodes and edges that several walks reached."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[tuple[str, str, str], Edge] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    activities: dict[str, int] = field(default_factory=dict)
    truncated: bool = False

    def as_graph(self) -> Subgraph:
        """In the order of their times, so that the same request always has the same answer."""
        nodes = sorted(self.nodes.values(), key=lambda node: (time_of(node) or _NEVER, node.id))
        return Subgraph(nodes, sorted(self.edges.values(), key=lambda e: (e.start, e.end)))

    def add(self, walked: Walked) -> None:
        self._add(walked.nodes, walked.edges)
        self.versions |= walked.versions
        self.activities |= walked.activities
        self.truncated = self.truncated or walked.truncated

    def merge_pods(self) -> None:
        """Leave out each Pod that has one container: this has its name, and all that it did."""
        parts: dict[str, list[tuple[str, str, str]]] = {}
        for key, edge in self.edges.items():
            if edge.kind == PART and self.nodes[edge.start].kind == POD:
                parts.setdefault(edge.start, []).append(key)
        for pod, edges in parts.items():
            if len(edges) == 1:
                del self.nodes[pod], self.edges[edges[0]]

    def add_paths(self, paths: PathsBetween) -> None:
        kept = {node.id for node in paths.nodes}
        if len(kept) > _MAX_PATH:
            kept = set(paths.shortest)
        self._add(
            [node for node in paths.nodes if node.id in kept],
            [edge for edge in paths.edges if edge.start in kept and edge.end in kept],
        )

    def _add(self, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
        for node in nodes:
            known = self.nodes.setdefault(node.id, node)
            if (node.hidden or 0) > (known.hidden or 0) or len(node.same_content or ()) > len(
                known.same_content or ()
            ):
                self.nodes[node.id] = node
        for edge in edges:
            self.edges.setdefault((edge.start, edge.end, edge.kind), edge)


@dataclass(frozen=True)
class Collected:
    """The nodes and edges of a request."""

    found: Collection
    first: Walked
    """The walk from the target."""
    missing: tuple[str, ...]
    """Nodes that should be expanded and no longer exist."""
    path: DrawnPath | None
    expanded: frozenset[str]
    """The nodes that were followed one by one, not as a group."""


def collect_lineage(
    graph: Graph, target: Target, request: Request, resolve: Resolve, *, limit: int = LIMIT
) -> Collected:
    """All nodes and edges near the target, around what was expanded, and on the path."""
    found = Collection()
    first: Walked | None = None
    for side in ("up", "down"):
        if request.direction in (side, "both"):
            walk = _walk(graph, request, limit, up=side == "up")
            walk.from_target(target, request.depth)
            walked = walk.collect(target)
            found.add(walked)
            first = first or walked
    assert first is not None
    missing: dict[str, None] = {}
    path = None
    if request.path is not None:
        path = _add_path(graph, found, request, resolve, missing)
    wanted = [(True, id_) for id_ in request.before] + [(False, id_) for id_ in request.after]
    single = [(up, id_) for up, id_ in wanted if not id_.startswith(_GROUP)]
    _add_neighbours(graph, found, request, single, resolve, missing, limit)
    alone = {first.target, *(id_ for _, id_ in single)}
    pending = [(up, id_.removeprefix(_GROUP)) for up, id_ in wanted if id_.startswith(_GROUP)]
    while ready := [(up, id_) for up, id_ in pending if id_ in found.nodes]:
        # What is expanded may have groups itself, which are next.
        members = find_group_members(found.as_graph(), alone)
        of_groups = [(up, one) for up, id_ in ready for one in members.get(id_, [id_])]
        _add_neighbours(graph, found, request, of_groups, resolve, missing, limit)
        pending = [one for one in pending if one not in ready]
    missing |= {f"{_GROUP}{id_}": None for _, id_ in pending}
    return Collected(found, first, tuple(missing), path, frozenset(id_ for _, id_ in single))


def _walk(graph: Graph, request: Request, limit: int, *, up: bool) -> Walk:
    everything = request.everything
    return Walk(graph, up=up, everything=everything, limit=limit, until=request.until)


def _add_neighbours(
    graph: Graph,
    found: Collection,
    request: Request,
    wanted: Sequence[tuple[bool, str]],
    resolve: Resolve,
    missing: dict[str, None],
    limit: int,
) -> None:
    """One step back (True) or on from each of these nodes."""
    for up in (True, False):
        ids = [id_ for direction, id_ in wanted if direction == up]
        if ids:
            walk = _walk(graph, request, limit, up=up)
            walk.add_neighbours(*_rows_of(ids, found, resolve, missing))
            found.add(walk.collect(_NOTHING))


def _add_path(
    graph: Graph, found: Collection, request: Request, resolve: Resolve, missing: dict[str, None]
) -> DrawnPath | None:
    assert request.path is not None
    ends = [resolve(end) for end in request.path]
    missing |= {text: None for text, end in zip(request.path, ends, strict=True) if end is None}
    if ends[0] is None or ends[1] is None:
        return None
    paths = find_paths(graph, ends[0], ends[1], everything=request.everything)
    found.add_paths(paths)
    for id_, node in found.nodes.items():
        if id_ not in found.versions and id_ not in found.activities and node.execution:
            target = resolve(id_)
            if target is not None and len(target.keys) == 1:
                rows = found.versions if target.kind == "version" else found.activities
                rows[id_] = target.keys[0]
    return DrawnPath(
        start=request.path[0],
        end=request.path[1],
        boxes=tuple(node.id for node in paths.nodes if node.id in found.nodes),
        shortest=paths.shortest,
    )


def trace_graph(
    graph: Graph, target: Target, request: Request, resolve: Resolve, *, limit: int = LIMIT
) -> LineageGraph:
    """The answer of `GET /api/v1/lineage/graph`."""
    collected = collect_lineage(graph, target, request, resolve, limit=limit)
    found, first, path = collected.found, collected.first, collected.path
    found.merge_pods()
    beyond = _look_beyond(graph, found, request, limit)
    numbered = found.as_graph()
    gaps = _find_gaps(graph, found)
    alone = {*first.roots, first.target, *collected.expanded}
    alone |= {*path.shortest, path.start, path.end} if path else set()
    drawn = draw(
        numbered,
        filters=request.filters,
        grouped=request.grouped,
        alone=alone if len(first.roots) <= FITS else alone - {*first.roots},
        opened=request.opened,
        marks=_mark(found, {first.target, *first.roots}, {gap.id for gap in gaps}),
        beyond=beyond,
    )
    times = [at for node in found.nodes.values() if (at := time_of(node))]
    counts: dict[str, int] = {}
    for kind in numbered.kinds:
        counts[kind] = counts.get(kind, 0) + 1
    return LineageGraph(
        target=first.target,
        roots=tuple(dict.fromkeys(drawn.box_of[r] for r in first.roots if r in drawn.box_of)),
        boxes=tuple(drawn.boxes),
        arrows=tuple(drawn.arrows),
        frames=tuple(drawn.frames),
        kinds=tuple(KindCount(kind=kind, count=counts[kind]) for kind in sorted(counts)),
        earliest=min(times, default=None),
        latest=max(times, default=None),
        total=len(found.nodes),
        filtered=len(found.nodes) - len(drawn.box_of),
        hidden_files=sum(node.hidden or 0 for node in found.nodes.values()),
        path=_draw_path(path, drawn.box_of),
        gaps=tuple(gaps),
        missing=collected.missing,
        truncated=found.truncated or drawn.truncated,
        withheld=first.withheld,
    )


_NOTHING = Target("nothing", "", ())


def _rows_of(
    ids: Iterable[str], found: Collection, resolve: Resolve, missing: dict[str, None]
) -> tuple[set[int], set[int]]:
    """The rows of nodes: versions, and activities."""
    versions: set[int] = set()
    activities: set[int] = set()
    for text in ids:
        if text in found.versions:
            versions.add(found.versions[text])
        elif text in found.activities:
            activities.add(found.activities[text])
        elif (target := resolve(text)) is None:
            missing[text] = None
        else:
            (versions if target.kind == "version" else activities).update(target.keys)
    return versions, activities


def _look_beyond(
    graph: Graph, found: Collection, request: Request, limit: int
) -> dict[str, tuple[set[str], set[str]]]:
    """For each node: what is before it and after it that is not among the nodes. Edges between the
    nodes that no walk followed, because of their times, are added."""
    beyond: dict[str, tuple[set[str], set[str]]] = {}
    for index, up in enumerate((True, False)):
        walk = _walk(graph, request, limit, up=up)
        walk.add_neighbours(found.versions.values(), found.activities.values())
        for edge in walk.collect(_NOTHING).edges:
            here, there = (edge.end, edge.start) if up else (edge.start, edge.end)
            if here in found.nodes and there not in found.nodes:
                beyond.setdefault(here, (set(), set()))[index].add(there)
            elif here in found.nodes:
                found.edges.setdefault((edge.start, edge.end, edge.kind), edge)
    return beyond


def _mark(found: Collection, targets: set[str], with_gaps: set[str]) -> dict[str, tuple[Mark, ...]]:
    marks: dict[str, tuple[Mark, ...]] = {}
    for node in found.nodes.values():
        of_node: list[Mark] = []
        if node.id in targets:
            of_node.append("target")
        if node.changed_outside:
            of_node.append("changed_outside")
        if node.same_content:
            of_node.append("same_content")
        if node.made_elsewhere:
            of_node.append("made_elsewhere")
        if node.id in with_gaps or node.gaps:
            of_node.append("gap")
        marks[node.id] = tuple(of_node)
    return marks


def _find_gaps(graph: Graph, found: Collection) -> list[ObservationGap]:
    """List the gaps of these activities and their executions."""
    names = {key: name for name, key in found.activities.items()}
    steps = LineageQueries(graph.connection)
    gaps: list[ObservationGap] = []
    for activity, execution, number, what, why, locator in steps.gaps(names):
        id_ = names.get(activity) if activity != execution else ExecutionId(f"e{number}")
        if id_ is not None and len(gaps) < _MAX_GAPS:
            path = path_fields(locator)["path"] if locator else None
            gaps.append(ObservationGap(id=id_, what=what, why=why, path=path))
    return gaps


def _draw_path(path: DrawnPath | None, box_of: dict[str, str]) -> DrawnPath | None:
    if path is None:
        return None
    return DrawnPath(
        start=box_of.get(path.start, path.start),
        end=box_of.get(path.end, path.end),
        boxes=tuple(dict.fromkeys(box_of[id_] for id_ in path.boxes if id_ in box_of)),
        shortest=tuple(dict.fromkeys(box_of[id_] for id_ in path.shortest if id_ in box_of)),
    )
