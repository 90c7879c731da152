"""All routes of our own API, and what is written down of them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from starlette.responses import JSONResponse

import clew
from clew.server.v1 import executions, lineage, logs, notes, run_progress, runs, traffic, versions
from clew.server.v1.dependencies import PROBLEM_RESPONSES
from clew.server.v1.schemas import Problem

PREFIX = "/api/v1"
_PARTS = (executions, versions, lineage, notes, run_progress, logs, traffic, runs)
"""Those whose paths say more stand before those that take what is left."""


def include(app: FastAPI) -> None:
    router = APIRouter(prefix=PREFIX, responses=PROBLEM_RESPONSES)
    for part in _PARTS:
        router.include_router(part.router)
    app.include_router(router)
    app.add_api_route(f"{PREFIX}/openapi.json", _answered, include_in_schema=False)


def _answered(request: Request) -> JSONResponse:
    return JSONResponse(openapi_document(request.app))


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Everything under /api/v1, in OpenAPI."""
    own = [
        route for route in iter_route_contexts(app.routes) if (route.path or "").startswith(PREFIX)
    ]
    found = get_openapi(
        title="Clew",
        version=clew.__version__,
        description="Every result, traced back to how it was made.",
        routes=own,
    )
    components = found.setdefault("components", {})
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    components.setdefault("schemas", {})["Problem"] = problem
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    found["security"] = [{"token": []}]
    return found
