"""A lineage, which may span many executions, as W3C PROV.

The names of entities and activities are those of the export of an execution, so that documents of
both kinds can be merged.
"""

from collections.abc import Iterator

from msgspec import UNSET

from clew.documents.lineage.lineage import Edge, Node
from clew.prov.export.w3c import (
    Name,
    Statement,
    Value,
    associate_agent,
    describe_agent,
    name_activity,
    name_entity,
    type_name,
    write_prov_json,
    write_prov_n,
)
from clew.prov.graph import Graph
from clew.prov.queries.cluster.cluster_walk import SAME_VOLUME
from clew.prov.queries.lineage.content_links import SAME_CONTENT
from clew.prov.queries.lineage.lineage_graph import (
    Collection,
    Request,
    Resolve,
    collect_lineage,
)
from clew.prov.queries.lineage.lineage_sql import LineageQueries
from clew.prov.queries.targets import Target

_CLUSTER_FIELDS = ("namespace", "pod", "container", "image", "node")
_UID = 3
"""Column of `LineageQueries.activities`."""


def export_lineage(
    graph: Graph,
    target: Target,
    request: Request,
    resolve: Resolve,
    *,
    as_json: bool,
) -> bytes:
    """All nodes of the request, whether they are drawn as groups or filtered out."""
    found = collect_lineage(graph, target, request, resolve).found
    steps = LineageQueries(graph.connection)
    rows = steps.activities(found.activities.values())
    names = {id_: name_entity(key) for id_, key in found.versions.items()}
    names |= {id_: name_activity(rows[key][_UID]) for id_, key in found.activities.items()}
    by_key = steps.agents(found.activities.values())
    agents = {id_: by_key[key] for id_, key in found.activities.items() if key in by_key}
    statements = list_statements(found, names, agents)
    return write_prov_json(statements) if as_json else write_prov_n(statements)


def list_statements(
    found: Collection, names: dict[str, str], agents: dict[str, str]
) -> Iterator[Statement]:
    """`names`: of nodes in the document; `agents`: who started the activities."""
    stated = [node for node in found.nodes.values() if node.id in names]
    for node in stated:
        yield _element(node, names[node.id])
    associated = {node.id: agents[node.id] for node in stated if node.id in agents}
    for agent in dict.fromkeys(associated.values()):
        yield describe_agent(agent)
    for id_, agent in associated.items():
        yield associate_agent(names[id_], agent)
    for edge in found.edges.values():
        if edge.start in names and edge.end in names:
            yield from _relation(edge, names[edge.start], names[edge.end])


def _element(node: Node, name: str) -> Statement:
    attributes: list[tuple[str, Value]] = [
        ("prov:type", Name(type_name(node.kind))),
        ("prov:label", node.label),
        ("clew:id", node.id),
    ]
    for field in _CLUSTER_FIELDS:
        if value := getattr(node, field):
            attributes.append((f"clew:{field}", value))
    if node.command is not UNSET:
        began = node.started.isoformat().replace("+00:00", "Z") if node.started else None
        return Statement("activity", name, (began, None), attributes)
    if node.locator:
        attributes.append(("prov:location", node.locator))
    for field in ("digest", "size", "found", "changed_outside"):
        value = getattr(node, field)
        if value is not UNSET and value is not None:
            attributes.append((f"clew:{field}", value))
    return Statement("entity", name, (), attributes)


def _relation(edge: Edge, start: str, end: str) -> Iterator[Statement]:
    role: list[tuple[str, Value]] = [("prov:role", edge.how)] if edge.how else []
    role += [("clew:observed", False)] if edge.inferred else []
    if edge.kind == "used":
        yield Statement("used", "", (end, start, None), role)
    elif edge.kind == "generated":
        yield Statement("wasGeneratedBy", "", (end, start, None), role)
    elif edge.kind == "informed":
        via: list[tuple[str, Value]] = [("clew:via", edge.via)] if edge.via else []
        via += [("clew:observed", False)] if edge.inferred else []
        yield Statement("wasInformedBy", "", (end, start), via)
    elif edge.kind == SAME_VOLUME:
        volume: list[tuple[str, Value]] = [("prov:type", Name("clew:SameVolume"))]
        yield Statement("wasDerivedFrom", "", (end, start), [*volume, ("clew:observed", False)])
    elif edge.kind == SAME_CONTENT:
        inferred: list[tuple[str, Value]] = [
            ("prov:type", Name("clew:SameContent")),
            ("clew:observed", False),
        ]
        facts = (("strength", edge.strength), ("member", edge.member))
        inferred += [(f"clew:{name}", value) for name, value in facts if value]
        yield Statement("wasDerivedFrom", "", (end, start), inferred)
