"""Executions: the list, the details of each, its reports and exports."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from clew.api.local.export import report
from clew.documents.executions.detail import Category, Files, Processes, Role
from clew.documents.executions.execution_list import ExecutionPage, RemovedExecutions
from clew.documents.executions.summary import ExecutionSummary
from clew.errors import UsageError
from clew.prov.queries.execution_list import list_executions as list_executions_and_count
from clew.prov.queries.execution_list import parse_conditions, select_executions
from clew.prov.queries.executions import find_execution
from clew.prov.queries.files import list_files as files_of
from clew.prov.queries.show import describe_file, load_facets
from clew.prov.queries.show import list_processes as processes
from clew.server.v1.dependencies import Limit, ProjectDep, Text
from clew.server.v1.document_router import DocumentRouter

router = DocumentRouter(tags=["executions"])

Id = Annotated[Text, Path(description="`e2`, its name, or its uid.", examples=["e1"])]
Filter = Annotated[
    Text,
    StringConstraints(max_length=1000),
    Field(
        description="`state:failed`, `name:TEXT`, `tag:NAME`, `made:elsewhere`, `made:here`, or"
        " any text of the command, the name, a tag or a note."
    ),
]
Since = Annotated[
    str,
    Query(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]{5,15}(Z|[+-][0-9:]{5})?)?$",
        description="Started then or later: a time of ISO 8601, in UTC unless it has a zone.",
        examples=["2026-11-17"],
    ),
]


@router.get("/executions")
def list_executions(
    project: ProjectDep,
    filters: Annotated[list[Filter] | None, Query(alias="filter", max_length=20)] = None,
    since: Since | None = None,
    workers: Annotated[bool, Query(description="Include workers of pipeline runs.")] = True,
    limit: Limit = 100,
    after: Annotated[str | None, Query(pattern=r"^e[0-9]{1,15}$")] = None,
) -> ExecutionPage:
    """Executions that match all filters, newest first."""
    graph, alive = project.graph, project.is_alive
    start = parse_time(since) if since else None
    conditions = parse_conditions(
        filters or (), since=start, workers=workers, foreign=graph.foreign
    )
    if after is None:
        page, rest = list_executions_and_count(graph, conditions, alive=alive, limit=limit)
        more, total = bool(rest), len(page) + rest
    else:
        page = select_executions(
            graph, conditions, alive=alive, before=int(after[1:]), limit=limit + 1
        )
        more, total = len(page) > limit, None
    shown = tuple(page[:limit])
    return ExecutionPage(executions=shown, next=shown[-1].id if more else None, total=total)


def parse_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text} is not a time", hint="2026-11-17T09:30:00Z") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


class Removal(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ids: Annotated[list[Text], Field(min_length=1, max_length=10_000)]
    dry_run: bool = False


@router.post("/executions/remove")
def remove_executions(project: ProjectDep, request: Removal) -> RemovedExecutions:
    """Remove the records of executions, all or none."""
    removed = project.remove(request.ids, dry_run=request.dry_run)
    return RemovedExecutions(executions=tuple(removed), dry_run=request.dry_run)


@router.get("/executions/{id}/processes")
def list_processes(project: ProjectDep, id: Id) -> Processes:  # noqa: A002
    _, tree = processes(project.graph, find_execution(project.graph, id))
    return Processes(processes=tree)


@router.get("/executions/{id}/files")
def list_files(
    project: ProjectDep,
    id: Id,  # noqa: A002
    role: Role | None = None,
    category: Annotated[Category | None, Query(alias="class")] = None,
    path: Annotated[str, Query(max_length=4096, description="A substring of the path.")] = "",
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Limit = 100,
) -> Files:
    execution = find_execution(project.graph, id)
    facets, _ = load_facets(project.graph, execution.key)
    facet = facets.get("packages")
    packages = facet if isinstance(facet, dict) else {}
    files = (describe_file(file, packages) for file in files_of(project.graph, execution.key))
    matching = [
        file
        for file in files
        if role in (None, file.role)
        and category in (None, file.category)
        and path.lower() in file.path.lower()
    ]
    end = offset + limit
    following = end if end < len(matching) else None
    return Files(files=tuple(matching[offset:end]), total=len(matching), next=following)


@router.get(
    "/executions/{id}/reports/{kind}",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def get_report(
    project: ProjectDep,
    id: Id,  # noqa: A002
    kind: Literal["requirements", "packages", "readme"],
) -> Response:
    """A report for pip, for the system's package manager, or for readers."""
    text = report(project, id, kind).encode(errors="surrogateescape")
    return Response(text, media_type="text/plain")


@router.get(
    "/executions/{id}/prov",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
def get_prov(project: ProjectDep, id: Id) -> Response:  # noqa: A002
    """The execution as W3C PROV-JSON."""
    document = project.export(find_execution(project.graph, id).id, format="prov-json")
    assert isinstance(document, bytes)
    return Response(document, media_type="application/json")


@router.get("/executions/{id}")
def get_execution(project: ProjectDep, id: Id, detail: bool = False) -> ExecutionSummary:  # noqa: A002
    return project.show(id, detail=detail)
