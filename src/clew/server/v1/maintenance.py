"""The project: its directory, the rules of comparisons, gc and fsck."""

from typing import Annotated

from fastapi import Query

from clew.documents.project.maintenance import Check, ProjectInfo, Reclaimed, Rules
from clew.server.v1.dependencies import ProjectDep
from clew.server.v1.document_router import DocumentRouter

router = DocumentRouter(tags=["project"])


@router.get("/project")
def get_project(project: ProjectDep) -> ProjectInfo:
    return ProjectInfo(root=str(project.root), uid=project.uid)


@router.get("/rules")
def list_rules(project: ProjectDep) -> Rules:
    """The differences that comparisons ignore."""
    return Rules(rules=tuple(project.rules()))


@router.post("/gc")
def collect_garbage(
    project: ProjectDep,
    dry_run: Annotated[bool, Query(description="Only count what would be freed.")] = False,
) -> Reclaimed:
    """Delete content that no execution refers to. With a large store this takes long."""
    return project.gc(dry_run=dry_run)


@router.post("/fsck")
def check_store(project: ProjectDep) -> Check:
    """Check every stored byte. With a large store this takes long."""
    return project.fsck()
