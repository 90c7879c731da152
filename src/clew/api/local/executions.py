"""Read executions from the graph of a local project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.api.executions import Execution

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState


def as_execution(project: ProjectState, document: dict[str, Any]) -> Execution:
    return Execution.read(document, ask=lambda uid: show_execution(project, uid, detail=True))


def list_executions(project: ProjectState) -> list[Execution]:
    from clew.prov.queries.executions import list_executions as executions

    documents = executions(project.graph, alive=project.is_alive)
    return [as_execution(project, document) for document in documents]


def find_execution(project: ProjectState, id: str) -> Execution:  # noqa: A002
    from clew.prov.queries.executions import get_execution

    return as_execution(project, get_execution(project.graph, id, alive=project.is_alive))


def show_execution(project: ProjectState, id: str, *, detail: bool) -> dict[str, Any]:  # noqa: A002
    """The document of `clew show --json`. A record that could not be recovered is listed in
    `gaps`."""
    from clew.prov.queries.show import show_execution as show
    from clew.redaction import withheld_matcher

    document = show(
        project.graph,
        id,
        alive=project.is_alive,
        is_credential=withheld_matcher(project.secrets.credentials),
        detail=detail,
    )
    if why := project.unrecovered.get(document["uid"]):
        gap = {"what": "record", "why": f"not recovered: {why}", "path": None, "by": None}
        document["gaps"].append(gap)
    return document
