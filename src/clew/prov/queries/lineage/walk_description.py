"""What a walk reached, in the words of documents: nodes, edges, and the rows they stand for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from clew.documents.lineage.lineage import Edge, Node
from clew.prov.graph import Graph
from clew.prov.queries.cluster.cluster_nodes import describe_activities
from clew.prov.queries.cluster.cluster_walk import SAME_VOLUME, ClusterWalk
from clew.prov.queries.cluster.lineage_nodes import (
    add_gaps,
    build_execution_node,
    build_volume_node,
)
from clew.prov.queries.cluster.visibility import withhold
from clew.prov.queries.lineage.content_links import SAME_CONTENT, Link
from clew.prov.queries.lineage.lineage_sql import LineageQueries, Version
from clew.prov.queries.lineage.nodes import (
    build_activity_node,
    build_file_nodes,
    build_unrecorded_node,
)
from clew.prov.queries.targets import Target

UNRECORDED: Final = 0
"""The key of a file that has no version: no hash is 0."""


@dataclass(frozen=True)
class Reached:
    """All that a walk came to, by the rows of the graph."""

    versions: Mapping[int, Version]
    activities: Mapping[int, int]
    """With the time by which each was bounded."""
    edges: Mapping[tuple[int, int, str], Mapping[str, str | bool]]
    targets: list[int]
    links: dict[int, Link]
    hidden: Mapping[int, set[int]]
    """By activity, the versions that are not drawn."""
    workers: Mapping[int, int]
    """By task, the worker that it was forked from, which is not drawn."""
    cluster: ClusterWalk | None
    counts_owned: bool
    """Files of packages are counted, not drawn."""
    truncated: bool


class Walked(NamedTuple):
    """What a walk reached."""

    nodes: list[Node]
    edges: list[Edge]
    roots: list[str]
    target: str
    truncated: bool
    withheld: int
    """How many nodes the caller may not see."""
    versions: dict[str, int]
    """The rows of the nodes that are versions."""
    activities: dict[str, int]
    """The rows of the nodes that are activities."""


def describe_walk(graph: Graph, steps: LineageQueries, reached: Reached, target: Target) -> Walked:
    keys = dict.fromkeys(reached.activities)
    for start, end, kind in reached.edges:
        if kind == "generated":
            keys[start] = None
        elif kind == "used":
            keys[end] = None
        elif kind not in (SAME_CONTENT, SAME_VOLUME):
            keys.update({start: None, end: None})
    names: dict[int, str] = {}
    activities = _build_activities(graph, steps, reached, keys, names)
    nodes = _build_versions(graph, steps, reached, names)
    versions = {name: key for key, name in names.items() if key in reached.versions}
    if target.kind == "file":
        link = reached.links.get(UNRECORDED)
        nodes.append(build_unrecorded_node(graph, steps, target, link))
        names[UNRECORDED] = target.label
    nodes += activities.values()
    edges = [
        Edge(start=names[start], end=names[end], kind=kind, **attributes)  # type: ignore[arg-type]
        for (start, end, kind), attributes in reached.edges.items()
        if start in names and end in names
    ]
    roots = [names[key] for key in reached.targets if key in names]
    if target.kind == "execution":
        nodes.insert(0, build_execution_node(graph, target))
        edges += [Edge(start=target.label, end=root, kind="part") for root in roots]
    shown, edges, withheld = withhold(graph, nodes, edges, roots)
    kept = {node.id for node in shown}
    return Walked(
        nodes=shown,
        edges=edges,
        withheld=withheld,
        roots=roots or [target.label],
        target=roots[0] if len(roots) == 1 else target.label,
        truncated=reached.truncated,
        versions={name: key for name, key in versions.items() if name in kept},
        activities={node.id: key for key, node in activities.items() if node.id in kept},
    )


def _build_versions(
    graph: Graph, steps: LineageQueries, reached: Reached, names: dict[int, str]
) -> list[Node]:
    """The nodes of versions and of whole volumes; `names` gets their ids."""
    volumes = {
        key: volume
        for key in reached.versions
        if reached.cluster and (volume := reached.cluster.volume(key))
    }
    made = {end for _, end, kind in reached.edges if kind == "generated"}
    versions = {key: version for key, version in reached.versions.items() if key not in volumes}
    nodes, found = build_file_nodes(graph, steps, versions, reached.links, made=made)
    names |= found
    names |= {key: volume.id for key, volume in volumes.items()}
    return [*nodes, *map(build_volume_node, volumes.values())]


def _build_activities(
    graph: Graph,
    steps: LineageQueries,
    reached: Reached,
    keys: Mapping[int, None],
    names: dict[int, str],
) -> dict[int, Node]:
    counted = {*keys, *reached.workers.values()}
    owned = steps.owned(counted) if reached.counts_owned else {}
    rows = steps.activities(keys)
    cluster_nodes = describe_activities(graph, rows) if reached.cluster else {}
    nodes = {}
    for key, row in rows.items():
        hidden = len(reached.hidden.get(key, ())) + owned.get(key, 0)
        hidden += owned.get(reached.workers.get(key, 0), 0)
        nodes[key] = build_activity_node(row, hidden, cluster_nodes.get(key))
        names[key] = nodes[key].id
    return add_gaps(steps, nodes, cluster_nodes.keys()) if cluster_nodes else nodes
