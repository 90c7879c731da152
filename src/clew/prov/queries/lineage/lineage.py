"""Trace a thing back to its origins, or forward to its uses.

Edges run the way data flows: `used` from file to process, `generated` from process to file,
`informed` from sender to receiver, `part` from an execution that was asked for to its processes,
`same_content` from a version to one with the same bytes that was found elsewhere: the only kind
that is inferred, not observed. Following it takes no step of the depth.
"""

from msgspec import UNSET

from clew.documents.lineage.lineage import Direction, Lineage
from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage_sql import FOREVER
from clew.prov.queries.lineage.walk import LIMIT, Walk
from clew.prov.queries.targets import Target


def trace_lineage(
    graph: Graph,
    target: Target,
    *,
    direction: Direction = "up",
    depth: int | None = None,
    everything: bool = False,
    as_of: int | None = None,
    limit: int = LIMIT,
) -> Lineage:
    """The document of `clew trace`.

    Files of packages and of the system are counted, not drawn, unless `everything` is asked for.
    What was used or made after `as_of` (nanoseconds) is not followed.
    """
    until = FOREVER if as_of is None else as_of
    walk = Walk(graph, up=direction == "up", everything=everything, limit=limit, until=until)
    walk.from_target(target, depth)
    found = walk.collect(target)
    return Lineage(
        target=found.target,
        direction=direction,
        nodes=tuple(found.nodes),
        edges=tuple(found.edges),
        roots=tuple(found.roots),
        truncated=found.truncated,
        withheld=found.withheld or UNSET,
    )
