"""All of Kubeflow's routes, under both path prefixes that its clients use."""

from fastapi import APIRouter
from starlette.responses import Response

from clew.server.http.problems import KUBEFLOW_PREFIXES
from clew.server.kfp import experiments, pipelines, recurring_runs, runs, uploads
from clew.server.kfp.responses import json_response

_routes = APIRouter()


@_routes.get("/healthz")
async def healthz() -> Response:
    return json_response({"multi_user": False})


for module in (uploads, pipelines, experiments, runs, recurring_runs):
    _routes.include_router(module.router)

router = APIRouter(include_in_schema=False)
for path_prefix in KUBEFLOW_PREFIXES:
    router.include_router(_routes, prefix=path_prefix)
