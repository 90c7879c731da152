"""Queries of the graph: lineage, paths between two objects, search, and differences."""

from typing import Annotated

from fastapi import Query

from clew.api.local.versions import find
from clew.api.pipeline_artifacts import is_run
from clew.documents.differences import ExecutionDiff, RunDiff
from clew.documents.lineage import Direction, Lineage, PathsBetween, SearchResults
from clew.prov.queries.lineage.paths_between import find_paths
from clew.prov.queries.search import search
from clew.server.v1.dependencies import Limit, ProjectDep, Target, Text
from clew.server.v1.document_router import DocumentRouter

router = DocumentRouter(tags=["graph"])


@router.get("/lineage")
def get_lineage(
    project: ProjectDep,
    target: Target,
    direction: Direction = "up",
    depth: Annotated[int | None, Query(ge=0, le=10_000)] = None,
    everything: Annotated[bool, Query(description="Include the files of packages.")] = False,
) -> Lineage:
    return project.lineage(target, direction=direction, depth=depth, everything=everything)


@router.get("/lineage/between")
def get_between(
    project: ProjectDep, a: Target, b: Target, everything: bool = False
) -> PathsBetween:
    """All paths between two objects, in whichever direction they run."""
    return find_paths(project.graph, find(project, a), find(project, b), everything=everything)


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
    a: Annotated[Text, Query(description="An execution or a run.", examples=["e1"])],
    b: Annotated[Text, Query(description="Another of the same kind.", examples=["e2"])],
) -> ExecutionDiff | RunDiff:
    """How `b` differs from `a`."""
    if is_run(a) and is_run(b):
        return project.pipelines.diff(a, b)
    return project.diff(a, b)
