"""Queries of the graph: lineage, paths between two objects, search, and differences."""

from typing import Annotated

from fastapi import Query

from clew.api.local.versions import find
from clew.api.pipeline_artifacts import is_run
from clew.documents.comparisons.differences import ExecutionDiff, PodDiff, RunDiff
from clew.documents.lineage.cluster_state import ClusterState
from clew.documents.lineage.lineage import Direction, Lineage, PathsBetween, SearchResults
from clew.documents.lineage.reproduction import Reproduction
from clew.prov.queries.lineage.paths_between import find_paths
from clew.prov.queries.search.search import search
from clew.server.v1.dependencies import Limit, ProjectDep, Target, Text
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.records.executions import Since, parse_time

router = DocumentRouter(tags=["graph"])

AsOf = Annotated[
    Since | None,
    Query(
        description="Names of a cluster as they were at this time, and nothing later.",
        examples=["2026-11-17T09:30:00Z"],
    ),
]


@router.get("/lineage")
def get_lineage(
    project: ProjectDep,
    target: Target,
    direction: Direction = "up",
    depth: Annotated[int | None, Query(ge=0, le=10_000)] = None,
    everything: Annotated[bool, Query(description="Include the files of packages.")] = False,
    as_of: AsOf = None,
) -> Lineage:
    """Where a thing came from, or what it went into. In a cluster, `withheld` counts what is in
    namespaces that the caller may not read."""
    return project.lineage(
        target,
        direction=direction,
        depth=depth,
        everything=everything,
        as_of=parse_time(as_of) if as_of else None,
    )


@router.get("/impact")
def get_impact(
    project: ProjectDep,
    target: Target,
    depth: Annotated[int | None, Query(ge=0, le=10_000)] = None,
    as_of: AsOf = None,
) -> Lineage:
    """Everything that was made from a thing: a file, an object, an image, a package. The same as
    `/lineage` with `direction=down`."""
    return get_lineage(project, target, "down", depth, as_of=as_of)


@router.get("/cluster")
def get_cluster_state(
    project: ProjectDep,
    as_of: AsOf = None,
    namespace: Annotated[
        Text | None, Query(description="Only objects of this namespace.", examples=["team"])
    ] = None,
) -> ClusterState:
    """What existed in the observed cluster at a time, by default now: Pods, claims, Services and
    other controllers, ConfigMaps and Secrets, in the namespaces that the caller may read."""
    return project.pods.state(as_of=parse_time(as_of) if as_of else None, namespace=namespace)


@router.get("/lineage/between")
def get_between(
    project: ProjectDep, a: Target, b: Target, everything: bool = False
) -> PathsBetween:
    """All paths between two objects, in whichever direction they run."""
    return find_paths(project.graph, find(project, a), find(project, b), everything=everything)


@router.get("/reproduction-plan")
def get_reproduction_plan(project: ProjectDep, target: Target, as_of: AsOf = None) -> Reproduction:
    """Which Pods would run to make a file on a volume, an object or a Pod's outputs again, and what
    would not be as it was. Nothing runs: that is for `clew reproduce`, with the rights of its user.
    404 if no Pod made it; 403 if one is in a namespace that the caller may not read."""
    at = parse_time(as_of) if as_of else None
    return project.pods.reproduce(target, as_of=at, dry_run=True)


@router.get("/search")
def get_search(
    project: ProjectDep,
    q: Annotated[
        Text, Query(description="A part of a path, name, command, note or tag; or a digest.")
    ],
    limit: Limit = 50,
) -> SearchResults:
    """Objects that contain `q`; at most `limit` of each kind."""
    return SearchResults(hits=tuple(search(project.graph, q, limit=limit)))


@router.get("/diff")
def get_difference(
    project: ProjectDep,
    a: Annotated[
        Text, Query(description="An execution, a run, or a Pod `pod/NS/NAME`.", examples=["e1"])
    ],
    b: Annotated[Text, Query(description="Another of the same kind.", examples=["e2"])],
) -> ExecutionDiff | PodDiff | RunDiff:
    """How `b` differs from `a`."""
    if is_run(a) and is_run(b):
        return project.pipelines.diff(a, b)
    return project.diff(a, b)
