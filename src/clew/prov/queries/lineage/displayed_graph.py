"""Turn nodes and edges into what is drawn: filter them, group like ones, and join what remains.

Pure functions of documents: `lineage_graph` asks the database. Things that are filtered out do not
interrupt a path: an arrow connects their neighbours.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec import UNSET

from clew.documents.lineage.lineage import Edge, Node
from clew.documents.lineage.lineage_graph import LineageArrow, LineageBox, LineageFrame, Mark
from clew.prov.queries.lineage import captions
from clew.prov.queries.lineage.content_links import SAME_CONTENT
from clew.prov.queries.lineage.groups import find_groups

FITS = 24
"""With more of them on one side of a node, things that are less alike are grouped, too."""
_LISTED = 20
"""Members of a group that its box names."""
_MAX_STEPS = 200_000
"""Steps through what is filtered out: a bound on the time this takes."""
PART, THROUGH = "part", "through"


@dataclass(frozen=True)
class Filters:
    hide: frozenset[str] = frozenset()
    """Kinds."""
    since: datetime | None = None
    until: datetime | None = None

    def keep(self, kind: str, at: datetime | None) -> bool:
        if kind in self.hide:
            return False
        if at is None:
            return True
        return (self.since is None or at >= self.since) and (self.until is None or at <= self.until)


@dataclass
class Subgraph:
    """Nodes and edges, by number."""

    nodes: Sequence[Node]
    edges: Sequence[Edge]
    kinds: list[str] = field(init=False)
    number: dict[str, int] = field(init=False)
    before: list[list[int]] = field(init=False)
    after: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.kinds = [captions.kind_of_node(node) for node in self.nodes]
        self.number = {node.id: number for number, node in enumerate(self.nodes)}
        self.before = [[] for _ in self.nodes]
        self.after = [[] for _ in self.nodes]
        for edge in self.edges:
            start, end = self.number[edge.start], self.number[edge.end]
            self.after[start].append(end)
            self.before[end].append(start)


@dataclass(frozen=True)
class Drawing:
    boxes: list[LineageBox]
    arrows: list[LineageArrow]
    frames: list[LineageFrame]
    box_of: dict[str, str]
    """The box that shows a node; of a node that is filtered out, none."""
    truncated: bool


def time_of(node: Node) -> datetime | None:
    for at in (node.started, node.at):
        if at is not UNSET:
            return at
    return None


def draw(
    graph: Subgraph,
    *,
    filters: Filters,
    grouped: bool,
    alone: Collection[str],
    opened: Collection[str],
    marks: Mapping[str, tuple[Mark, ...]],
    beyond: Mapping[str, tuple[Collection[str], Collection[str]]],
) -> Drawing:
    """`alone`: nodes that are in no group and always drawn. `opened`: any node of each group that
    is shown as its members. `beyond`: the neighbours of nodes that are not among the nodes."""
    shown = [
        node.id in alone or filters.keep(graph.kinds[number], time_of(node))
        for number, node in enumerate(graph.nodes)
    ]
    units = [[number] for number in range(len(graph.nodes))]
    if grouped:
        units = _group(graph, shown, set(alone))
    boxes, frames, box_of = [], [], {}
    for unit in units:
        if not shown[unit[0]]:
            continue
        opened_here = len(unit) > 1 and any(graph.nodes[n].id in opened for n in unit)
        if len(unit) > 1 and not opened_here:
            boxes.append(_group_box(graph, unit, marks, beyond))
            box_of.update({graph.nodes[number].id: boxes[-1].id for number in unit})
            continue
        frame = _frame(graph, unit) if opened_here else None
        if frame is not None:
            frames.append(frame)
        for number in unit:
            boxes.append(_node_box(graph, number, frame, marks, beyond))
            box_of[boxes[-1].id] = boxes[-1].id
    arrows, truncated = _join(graph, box_of)
    return Drawing(boxes, arrows, frames, box_of, truncated)


def find_group_members(graph: Subgraph, alone: Collection[str]) -> dict[str, list[str]]:
    """For each node of a group: all nodes of it."""
    members: dict[str, list[str]] = {}
    for unit in _group(graph, [True] * len(graph.nodes), set(alone)):
        if len(unit) > 1:
            ids = [graph.nodes[number].id for number in unit]
            members.update(dict.fromkeys(ids, ids))
    return members


def _group(graph: Subgraph, shown: list[bool], alone: set[str]) -> list[list[int]]:
    """All nodes, like ones together, in the order of the first of each."""
    made = [False] * len(graph.nodes)
    for edge in graph.edges:
        if edge.kind == "generated":
            made[graph.number[edge.end]] = True
    like = [
        captions.likeness(node, graph.kinds[number], made=made[number])
        for number, node in enumerate(graph.nodes)
    ]
    single = [
        node.id in alone or bool(node.changed_outside) or bool(node.source) for node in graph.nodes
    ]

    def narrow(number: int) -> object:
        return (shown[number], like[number], number if single[number] else -1)

    def by_directory(number: int) -> object:
        if single[number] or graph.nodes[number].command is not UNSET:
            return narrow(number)
        directory = str(graph.nodes[number].path or "").rpartition("/")[0]
        return (shown[number], "in", _general(graph.kinds[number]) or directory)

    def wide(number: int) -> object:
        if single[number]:
            return narrow(number)
        kind = graph.kinds[number]
        return (shown[number], "kind", _general(kind) or kind)

    groups = find_groups([narrow, by_directory, wide], graph.before, graph.after, fits=FITS)
    first = {unit[0]: unit for unit in groups}
    grouped = {number for unit in groups for number in unit}
    return [
        first.get(number, [number])
        for number in range(len(graph.nodes))
        if number in first or number not in grouped
    ]


def _general(kind: str) -> str:
    return "installed" if captions.is_installed(kind) else ""


def _group_id(graph: Subgraph, unit: list[int]) -> str:
    return f"group:{graph.nodes[unit[0]].id}"


def _group_box(
    graph: Subgraph,
    unit: list[int],
    marks: Mapping[str, tuple[Mark, ...]],
    beyond: Mapping[str, tuple[Collection[str], Collection[str]]],
) -> LineageBox:
    nodes = [graph.nodes[number] for number in unit]
    kind = graph.kinds[unit[0]]
    title, subtitle = captions.describe_group(nodes, kind)
    found = {mark: None for node in nodes for mark in marks.get(node.id, ())}
    around = [beyond.get(node.id, ((), ())) for node in nodes]
    return LineageBox(
        id=_group_id(graph, unit),
        kind=kind,
        title=title,
        subtitle=subtitle,
        marks=tuple(found),
        count=len(nodes),
        members=tuple(node.id for node in nodes[:_LISTED]),
        frame=None,
        before=len({other for before, _ in around for other in before}),
        after=len({other for _, after in around for other in after}),
        at=min((at for node in nodes if (at := time_of(node))), default=None),
        node=None,
    )


def _node_box(
    graph: Subgraph,
    number: int,
    frame: LineageFrame | None,
    marks: Mapping[str, tuple[Mark, ...]],
    beyond: Mapping[str, tuple[Collection[str], Collection[str]]],
) -> LineageBox:
    node = graph.nodes[number]
    before, after = beyond.get(node.id, ((), ()))
    return LineageBox(
        id=node.id,
        kind=graph.kinds[number],
        title=captions.title_of(node),
        subtitle=captions.subtitle_of(node),
        marks=marks.get(node.id, ()),
        count=1,
        members=(),
        frame=frame.id if frame else None,
        before=len(before),
        after=len(after),
        at=time_of(node),
        node=node,
    )


def _frame(graph: Subgraph, unit: list[int]) -> LineageFrame:
    nodes = [graph.nodes[number] for number in unit]
    kind = graph.kinds[unit[0]]
    title, subtitle = captions.describe_group(nodes, kind)
    return LineageFrame(
        id=_group_id(graph, unit), kind=kind, title=title, subtitle=subtitle, count=len(nodes)
    )


def _join(graph: Subgraph, box_of: Mapping[str, str]) -> tuple[list[LineageArrow], bool]:
    """The arrows between boxes; edges between the same two boxes are one arrow."""
    kinds: dict[tuple[str, str], dict[str, None]] = {}
    counts: dict[tuple[str, str], int] = {}
    weak: set[tuple[str, str]] = set()
    observed: set[tuple[str, str]] = set()
    for edge in graph.edges:
        ends = box_of.get(edge.start), box_of.get(edge.end)
        if ends[0] is None or ends[1] is None or ends[0] == ends[1]:
            continue
        pair = (ends[0], ends[1])
        kinds.setdefault(pair, {})[edge.kind] = None
        counts[pair] = counts.get(pair, 0) + 1
        if edge.strength == "weak":
            weak.add(pair)
        if edge.kind != SAME_CONTENT and not edge.inferred:
            observed.add(pair)
    through, truncated = _find_ways_through(graph, box_of)
    for pair in through:
        if pair not in kinds:
            kinds[pair] = {THROUGH: None}
            observed.add(pair)
            counts[pair] = 1
    reached = {end for (_, end), found in kinds.items() if set(found) != {PART}}
    arrows = [
        LineageArrow(
            start=start,
            end=end,
            kinds=tuple(kinds[start, end]),
            count=counts[start, end],
            inferred=(start, end) not in observed,
            weak=(start, end) in weak,
        )
        for start, end in kinds
        # That a process is a part of its execution is worth an arrow only where data does not say.
        if set(kinds[start, end]) != {PART} or end not in reached
    ]
    return arrows, truncated


def _find_ways_through(
    graph: Subgraph, box_of: Mapping[str, str]
) -> tuple[dict[tuple[str, str], None], bool]:
    """Pairs of boxes between which a way leads only through nodes that are filtered out."""
    hidden = [node.id not in box_of for node in graph.nodes]
    found: dict[tuple[str, str], None] = {}
    steps = 0
    for number, node in enumerate(graph.nodes):
        if hidden[number]:
            continue
        waiting = [other for other in graph.after[number] if hidden[other]]
        seen = set(waiting)
        while waiting:
            here = waiting.pop()
            for there in graph.after[here]:
                steps += 1
                if steps > _MAX_STEPS:
                    return found, True
                if not hidden[there]:
                    pair = (box_of[node.id], box_of[graph.nodes[there].id])
                    if pair[0] != pair[1]:
                        found[pair] = None
                elif there not in seen:
                    seen.add(there)
                    waiting.append(there)
    return found, False
