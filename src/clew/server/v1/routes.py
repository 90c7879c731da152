"""Puts the routes of our own API together, and generates their OpenAPI document."""

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from starlette.responses import JSONResponse

import clew
from clew.documents.problem import ProblemDetails
from clew.documents.workloads.forms import FORMS
from clew.documents.workloads.kubeflow import Failure
from clew.server.http.problems import WEB_APP_PREFIXES
from clew.server.v1 import activities, changes, maintenance, repeats, status, traffic
from clew.server.v1.dependencies import PROBLEM_RESPONSES
from clew.server.v1.document_router import describe_documents
from clew.server.v1.pipelines import pipelines, schedules
from clew.server.v1.records import executions, exports, lineage, lineage_graph, notes, versions
from clew.server.v1.runs import log_lines, logs, run_progress, runs
from clew.server.v1.settings import access_tokens, form_defaults, remotes, server_info
from clew.server.v1.workloads import (
    backend,
    container_log,
    details,
    open_tensorboard,
    programs,
)

PREFIX = "/api/v1"
_MODULES = (
    *(log_lines, exports, executions, versions, lineage, lineage_graph),
    *(notes, maintenance, status, traffic),
    *(activities, changes, repeats),
    *(access_tokens, form_defaults, remotes, server_info),
    *(pipelines, schedules),
    *(run_progress, logs, runs),
    *(backend, programs, open_tensorboard, container_log, details),
)
"""Modules with more specific paths come first: the first matching route wins."""


def include(app: FastAPI) -> None:
    router = APIRouter(prefix=PREFIX, responses=PROBLEM_RESPONSES)
    for module in _MODULES:
        router.include_router(module.router)
    app.include_router(router)
    app.add_api_route(f"{PREFIX}/openapi.json", _get_openapi, include_in_schema=False)


def _get_openapi(request: Request) -> JSONResponse:
    return JSONResponse(openapi_document(request.app))


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of everything under /api/v1, and of Kubeflow's web apps."""
    api_routes = [
        route
        for route in iter_route_contexts(app.routes)
        if (route.path or "").startswith((PREFIX, *WEB_APP_PREFIXES))
    ]
    document = get_openapi(
        title="Clew",
        version=clew.__version__,
        description="Every result, traced back to how it was made.",
        routes=api_routes,
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    endpoints = [route.endpoint for route in api_routes]
    schemas |= describe_documents(endpoints, more=(ProblemDetails, Failure, *FORMS))
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    return document
