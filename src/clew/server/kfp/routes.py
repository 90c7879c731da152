"""All of Kubeflow's routes, at both places where its clients look for them."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from clew.server.http.problems import KUBEFLOW_PREFIXES
from clew.server.kfp import experiments, pipelines, recurring_runs, runs, uploads
from clew.server.kfp.responses import json_response

_ALL = APIRouter()


@_ALL.get("/healthz")
async def healthz() -> Response:
    return json_response({"multi_user": False})


for one in (uploads, pipelines, experiments, runs, recurring_runs):
    _ALL.include_router(one.router)

router = APIRouter(include_in_schema=False)
for place in KUBEFLOW_PREFIXES:
    router.include_router(_ALL, prefix=place)
