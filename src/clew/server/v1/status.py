"""The status of the project."""

from typing import Annotated

from fastapi import Query

from clew.api.local.status import describe_served
from clew.documents.project.status import ServedStatus
from clew.server.v1.dependencies import ProjectDep
from clew.server.v1.document_router import DocumentRouter

router = DocumentRouter(tags=["status"])


@router.get("/status")
def get_status(
    project: ProjectDep,
    machine: Annotated[
        str, Query(pattern=r"^[A-Za-z0-9-]{1,64}$", description="Whose files: a machine id.")
    ],
) -> ServedStatus:
    """The size of the store, and the files of a machine that executions read or wrote last."""
    return describe_served(project, machine)
