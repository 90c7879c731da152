"""The lineage of a target as the web app draws and exports it.

What was expanded can be hundreds of ids, which do not fit into an address: so they are sent in the
body of a request, although it changes nothing.
"""

from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import BaseModel, ConfigDict, Field

from clew.api.local.versions import as_of_nanoseconds, find, find_node
from clew.documents.lineage.lineage_graph import LineageGraph, Sides
from clew.prov.export.lineage import export_lineage
from clew.prov.queries.lineage.displayed_graph import Filters
from clew.prov.queries.lineage.lineage_graph import DEPTH, Request, trace_graph
from clew.prov.queries.lineage.lineage_sql import FOREVER
from clew.server.v1.dependencies import ProjectDep, Text
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.records.executions import Since, parse_time

router = DocumentRouter(tags=["graph"])

Ids = Annotated[list[Text], Field(max_length=200)]
_PROV = {
    "json": "application/json",
    "n": "text/provenance-notation",
}


class GraphRequest(BaseModel):
    """What to draw. `before`, `after`: nodes and groups to go one step back or on from. `opened`: a
    node of each group to show as its members. `path`: two nodes, whose ways are added. `hide`:
    kinds of boxes; ways through what is hidden stay. `as_of`: names of a cluster as they were
    at this time, and nothing later."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[Text, Field(description="As for `/lineage`.", examples=["e1"])]
    direction: Sides = "both"
    depth: Annotated[int | None, Field(ge=0, le=10_000)] = DEPTH
    everything: Annotated[bool, Field(description="Include the files of packages.")] = False
    before: Ids = []
    after: Ids = []
    opened: Ids = []
    path: Annotated[list[Text], Field(min_length=2, max_length=2)] | None = None
    grouped: bool = True
    hide: Annotated[list[Text], Field(max_length=50)] = []
    since: Since | None = None
    until: Since | None = None
    as_of: Since | None = None

    def parse(self) -> Request:
        return Request(
            direction=self.direction,
            depth=self.depth,
            everything=self.everything,
            before=self.before,
            after=self.after,
            opened=self.opened,
            path=(self.path[0], self.path[1]) if self.path else None,
            grouped=self.grouped,
            filters=Filters(
                hide=frozenset(self.hide),
                since=parse_time(self.since) if self.since else None,
                until=parse_time(self.until) if self.until else None,
            ),
            until=FOREVER if (at := as_of_nanoseconds(self.time)) is None else at,
        )

    @property
    def time(self) -> datetime | None:
        return parse_time(self.as_of) if self.as_of else None


@router.post("/lineage/graph")
def draw_lineage(project: ProjectDep, request: GraphRequest) -> LineageGraph:
    """The lineage of a target as boxes and arrows, near it and along what is expanded. Like nodes
    are grouped, and each box says how many of its neighbours are not drawn."""
    target = find(project, request.target, as_of=request.time)
    return trace_graph(project.graph, target, request.parse(), partial(find_node, project))


@router.post(
    "/lineage/prov",
    response_class=Response,
    responses={
        200: {
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "text/provenance-notation": {"schema": {"type": "string"}},
            }
        }
    },
)
def export_drawn(
    project: ProjectDep,
    request: GraphRequest,
    format: Annotated[Literal["json", "n"], Query()] = "json",  # noqa: A002
) -> Response:
    """What `/lineage/graph` draws as W3C PROV: PROV-JSON or PROV-N. Filters do not apply."""
    target = find(project, request.target, as_of=request.time)
    resolve = partial(find_node, project)
    parsed, as_json = request.parse(), format == "json"
    document = export_lineage(project.graph, target, parsed, resolve, as_json=as_json)
    return Response(document, media_type=_PROV[format])
