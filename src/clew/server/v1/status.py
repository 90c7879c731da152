"""The status of the project."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Response

from clew.api.local.status import describe_served
from clew.server.v1.dependencies import ProjectDep

router = APIRouter(tags=["status"])


@router.get("/status", include_in_schema=False)
def get_status(
    project: ProjectDep, machine: Annotated[str, Query(pattern=r"^[A-Za-z0-9-]{1,64}$")]
) -> Response:
    """The size of the store, and the files of a machine that executions read or wrote last."""
    document = msgspec.json.encode(describe_served(project, machine))
    return Response(document, media_type="application/json")
