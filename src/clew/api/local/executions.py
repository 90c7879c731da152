"""Read executions from the graph of a local project."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from clew.api.executions import Execution, ExecutionList

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState
    from clew.documents.executions.detail import ExecutionDetail
    from clew.documents.executions.execution_list import Execution as ExecutionDocument
    from clew.documents.executions.summary import ExecutionSummary


def as_execution(project: ProjectState, document: ExecutionDocument) -> Execution:
    return Execution.of(document, lambda uid: _show(project, uid, detail=True))


def list_executions(project: ProjectState) -> list[Execution]:
    from clew.prov.queries.executions import list_executions as executions

    documents = executions(project.graph, alive=project.is_alive)
    return [as_execution(project, document) for document in documents]


def select_executions(
    project: ProjectState,
    filters: Iterable[str],
    *,
    since: datetime | None,
    limit: int | None,
    workers: bool,
) -> ExecutionList:
    from clew.prov.queries.execution_list import list_executions as select
    from clew.prov.queries.execution_list import parse_conditions

    graph = project.graph
    conditions = parse_conditions(filters, since=since, workers=workers, foreign=graph.foreign)
    found, more = select(graph, conditions, alive=project.is_alive, limit=limit)
    executions = tuple(as_execution(project, document) for document in found)
    return ExecutionList(executions=executions, more=more)


def find_execution(project: ProjectState, id: str) -> Execution:  # noqa: A002
    from clew.prov.queries.executions import get_execution

    return as_execution(project, get_execution(project.graph, id, alive=project.is_alive))


def show_execution(project: ProjectState, id: str, *, detail: bool) -> ExecutionSummary:  # noqa: A002
    """The document of `clew show --json`."""
    from clew.api.local.summary import summarize

    return summarize(project.graph, _show(project, id, detail=detail))


def _show(project: ProjectState, id: str, *, detail: bool) -> ExecutionDetail:  # noqa: A002
    """A record that could not be recovered is listed in `gaps`."""
    from msgspec import structs

    from clew.documents.executions.detail import Gap
    from clew.prov.queries.show import show_execution as show
    from clew.redaction import make_withheld_matcher

    document = show(
        project.graph,
        id,
        alive=project.is_alive,
        is_credential=make_withheld_matcher(project.secrets.credentials),
        detail=detail,
    )
    if why := project.unrecovered.get(document.uid):
        gap = Gap(what="record", why=f"not recovered: {why}", path=None, by=None)
        return structs.replace(document, gaps=(*document.gaps, gap))
    return document
