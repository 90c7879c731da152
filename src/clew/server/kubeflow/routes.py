"""All routes of Kubeflow's web apps."""

from typing import Any

from fastapi import APIRouter, Depends

from clew.server.kubeflow import jupyter, tensorboards, volumes
from clew.server.kubeflow.csrf import check_csrf
from clew.server.v1.dependencies import PROBLEM_RESPONSES

_FAILURE = {"schema": {"$ref": "#/components/schemas/Failure"}}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {**response, "content": {"application/json": _FAILURE}}
    for status, response in PROBLEM_RESPONSES.items()
}

router = APIRouter(responses=_RESPONSES, dependencies=[Depends(check_csrf)])
for module in (jupyter, tensorboards, volumes):
    router.include_router(module.router)
