"""Volumes, Pods and requests as nodes of a lineage's document."""

from collections.abc import Collection
from typing import TypedDict

from msgspec import structs

from clew.documents.ids import Locator
from clew.documents.lineage.lineage import Node, NodeGap
from clew.prov.graph import Graph
from clew.prov.queries.cluster.cluster_nodes import (
    ClusterNode,
    describe_activities,
    namespace_of_locator,
)
from clew.prov.queries.cluster.names import VOLUME_FILE
from clew.prov.queries.cluster.volume_accesses import Volume
from clew.prov.queries.formats import path_fields
from clew.prov.queries.lineage.lineage_sql import LineageQueries
from clew.prov.queries.targets import Target

MAX_GAPS = 20
"""Gaps that a node lists."""


class ClusterFields(TypedDict, total=False):
    """The fields of a node that only what is of a cluster has, and tasks that ran as Pods."""

    namespace: str | None
    pod: str | None
    container: str | None
    image: str | None
    node: str | None
    placement: str
    agent: str | None
    owner: str


def describe_cluster_fields(node: ClusterNode | None) -> ClusterFields:
    if node is None:
        return {}
    fields: ClusterFields = {
        "namespace": node.namespace,
        "pod": node.pod,
        "container": node.container,
        "image": node.image,
        "node": node.machine,
        "agent": node.agent,
    }
    return {**fields, "owner": node.owner} if node.owner else fields


def label_of(locator: Locator) -> str:
    """A place as users write it: a file on a claim without the name of its volume."""
    match = VOLUME_FILE.fullmatch(locator)
    if match is None:
        return path_fields(locator)["path"]
    return match[1] + locator[len(match[1]) + len(match[2]) + 1 :]


def build_volume_node(volume: Volume) -> Node:
    """A volume as a whole, where no witness saw the files."""
    claim = label_of(volume.locator)
    return Node(
        id=volume.id,
        kind="volume",
        label=f"{claim} (anything that unwatched Pods wrote)" if volume.unwatched else claim,
        path=claim,
        locator=volume.locator,
        execution=None,
        version=None,
        found=False,
        digest=None,
        size=None,
        stored=False,
        made_elsewhere=False,
        namespace=namespace_of_locator(volume.locator),
    )


def build_execution_node(graph: Graph, target: Target) -> Node:
    """An execution that was asked for; a Pod by its name."""
    node = describe_activities(graph, target.keys[:1]).get(target.keys[0]) if target.keys else None
    return Node(
        id=target.label,
        kind="execution" if node is None else node.kind,
        label=target.label if node is None else node.label,
        **describe_cluster_fields(node),
    )


def add_gaps(
    steps: LineageQueries, nodes: dict[int, Node], keys: Collection[int]
) -> dict[int, Node]:
    """The nodes, those of a cluster (`keys`) with what could not be observed of them. What is known
    of a Pod counts for each of its containers."""
    members: dict[int, list[int]] = {}
    for key, execution in steps.executions(keys).items():
        members.setdefault(execution, []).append(key)
        members.setdefault(key, []).append(key)
    gaps: dict[int, dict[NodeGap, None]] = {}
    for activity, _, _, what, why, locator in steps.gaps(keys):
        gap = NodeGap(what=what, why=why, path=None if locator is None else label_of(locator))
        for key in members.get(activity, ()):
            gaps.setdefault(key, {})[gap] = None
    return {
        key: structs.replace(node, gaps=tuple(gaps.get(key, ()))[:MAX_GAPS])
        if key in keys
        else node
        for key, node in nodes.items()
    }
