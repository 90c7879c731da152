"""Find all paths between two things in the graph.

Walk back from the later thing, as lineage does; the nodes that can also be reached from the earlier
one are on a path between them.
"""

from collections import deque
from typing import Any

from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage import trace_lineage
from clew.prov.queries.targets import Target


def find_paths(graph: Graph, a: Target, b: Target, *, everything: bool = False) -> dict[str, Any]:
    """The ways from `a` to `b`, or else from `b` to `a`: `from` and `to` say which; without any
    there are no nodes. `shortest` is one of the ways, node by node."""
    truncated = False
    for start, end in ((a, b), (b, a)):
        above = trace_lineage(graph, end, direction="up", everything=everything)
        truncated = truncated or above["truncated"]
        found = _find_paths(above, _target_nodes(graph, start, above), set(above["roots"]))
        if found is not None:
            return {
                "a": a.label,
                "b": b.label,
                "from": start.label,
                "to": end.label,
                **found,
                "truncated": above["truncated"],
            }
    none: dict[str, Any] = {"from": None, "to": None, "nodes": [], "edges": [], "shortest": []}
    return {"a": a.label, "b": b.label, **none, "truncated": truncated}


def _target_nodes(graph: Graph, target: Target, above: dict[str, Any]) -> set[str]:
    """The nodes that the target is."""
    if target.kind == "execution":
        marks = "SELECT number FROM execution WHERE id IN ({})"
        numbers = {f"e{number}" for (number,) in graph.connection.rows_in(marks, target.keys)}
        return {
            node["id"]
            for node in above["nodes"]
            if node["id"] == target.label
            or (node.get("execution") in numbers and "command" in node)
        }
    if target.kind == "version":
        return set(trace_lineage(graph, target, depth=0)["roots"])
    return {target.label}


def _find_paths(above: dict[str, Any], starts: set[str], ends: set[str]) -> dict[str, Any] | None:
    after: dict[str, list[str]] = {}
    for edge in above["edges"]:
        after.setdefault(edge["from"], []).append(edge["to"])
    known = {node["id"] for node in above["nodes"]}
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
    kept = _nodes_reaching(above["edges"], before.keys(), ends)
    return {
        "nodes": [node for node in above["nodes"] if node["id"] in kept],
        "edges": [edge for edge in above["edges"] if {edge["from"], edge["to"]} <= kept],
        "shortest": _path_to(before, reached[0]),
    }


def _nodes_reaching(edges: list[dict[str, Any]], reached: Any, ends: set[str]) -> set[str]:
    """Of what was reached, that from which an end can be reached."""
    earlier: dict[str, list[str]] = {}
    for edge in edges:
        if edge["from"] in reached and edge["to"] in reached:
            earlier.setdefault(edge["to"], []).append(edge["from"])
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
