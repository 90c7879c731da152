"""Find all paths between two things in the graph.

Walk back from the later thing, as lineage does; the nodes that can also be reached from the earlier
one are on a path between them.
"""

from collections import deque
from collections.abc import Collection, Iterable

from msgspec import UNSET

from clew.documents.lineage.lineage import Edge, Lineage, PathsBetween
from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage import trace_lineage
from clew.prov.queries.targets import Target


def find_paths(graph: Graph, a: Target, b: Target, *, everything: bool = False) -> PathsBetween:
    """The ways from `a` to `b`, or else from `b` to `a`: `from` and `to` say which; without any
    there are no nodes. `shortest` is one of the ways, node by node."""
    truncated = False
    for start, end in ((a, b), (b, a)):
        above = trace_lineage(graph, end, direction="up", everything=everything)
        truncated = truncated or above.truncated
        found = _find_paths(above, _target_nodes(graph, start, above), set(above.roots))
        if found is not None:
            nodes, shortest = found
            return PathsBetween(
                a=a.label,
                b=b.label,
                start=start.label,
                end=end.label,
                nodes=tuple(node for node in above.nodes if node.id in nodes),
                edges=tuple(edge for edge in above.edges if {edge.start, edge.end} <= nodes),
                shortest=tuple(shortest),
                truncated=above.truncated,
            )
    return PathsBetween(
        a=a.label,
        b=b.label,
        start=None,
        end=None,
        nodes=(),
        edges=(),
        shortest=(),
        truncated=truncated,
    )


def _target_nodes(graph: Graph, target: Target, above: Lineage) -> set[str]:
    """The ids of the target's nodes."""
    if target.kind == "execution":
        marks = "SELECT number FROM execution WHERE id IN ({})"
        numbers = {f"e{number}" for (number,) in graph.connection.rows_in(marks, target.keys)}
        return {
            node.id
            for node in above.nodes
            if node.id == target.label or (node.execution in numbers and node.command is not UNSET)
        }
    if target.kind == "version":
        return set(trace_lineage(graph, target, depth=0).roots)
    return {target.label}


def _find_paths(
    above: Lineage, starts: set[str], ends: set[str]
) -> tuple[set[str], list[str]] | None:
    """The nodes on the paths, and a shortest path; None if there is none."""
    after: dict[str, list[str]] = {}
    for edge in above.edges:
        after.setdefault(edge.start, []).append(edge.end)
    known = {node.id for node in above.nodes}
    before: dict[str, str | None] = dict.fromkeys(sorted(starts & known))
    waiting = deque(before)
    while waiting:
        here = waiting.popleft()
        for there in after.get(here, ()):
            if there not in before:
                before[there] = here
                waiting.append(there)
    reached = [node for node in before if node in ends]
    if not reached:
        return None
    return _nodes_reaching(above.edges, before.keys(), ends), _path_to(before, reached[0])


def _nodes_reaching(edges: Iterable[Edge], reached: Collection[str], ends: set[str]) -> set[str]:
    """The nodes among `reached` from which an end can be reached."""
    earlier: dict[str, list[str]] = {}
    for edge in edges:
        if edge.start in reached and edge.end in reached:
            earlier.setdefault(edge.end, []).append(edge.start)
    kept = {end for end in ends if end in reached}
    waiting = deque(kept)
    while waiting:
        for node in earlier.get(waiting.popleft(), ()):
            if node not in kept:
                kept.add(node)
                waiting.append(node)
    return kept


def _path_to(before: dict[str, str | None], end: str) -> list[str]:
    way: list[str] = []
    here: str | None = end
    while here is not None:
        way.append(here)
        here = before[here]
    return way[::-1]
