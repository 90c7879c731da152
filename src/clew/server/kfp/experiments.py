"""`/experiments`."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from clew.db.connection import Row
from clew.prov.queries.formats import format_time
from clew.server.catalogue import experiments
from clew.server.catalogue.experiments import Experiment
from clew.server.catalogue.list_fields import EXPERIMENTS
from clew.server.kfp.list_query import list_page
from clew.server.kfp.request_fields import BodyFields, ServiceDep, UrlFields
from clew.server.kfp.responses import empty_response, json_response, without_empty

router = APIRouter()


def _experiment_response(experiment: Experiment) -> dict[str, Any]:
    return without_empty(
        experiment_id=experiment.id,
        display_name=experiment.name,
        description=experiment.description,
        created_at=format_time(experiment.created),
        last_run_created_at=format_time(experiment.last_run),
        storage_state="ARCHIVED" if experiment.archived else "AVAILABLE",
    )


def _list_response(rows: list[Row]) -> list[dict[str, Any]]:
    return [_experiment_response(experiments.from_row(row)) for row in rows]


@router.post("/experiments")
def create(service: ServiceDep, body: BodyFields) -> Response:
    name, description = body.required_name("display_name"), body.text("description")
    with service.graph() as graph:
        experiment_id = experiments.create(graph, name, description)
        return json_response(_experiment_response(experiments.get(graph, experiment_id)))


@router.get("/experiments")
def list_(service: ServiceDep, params: UrlFields) -> Response:
    with service.graph() as graph:
        return json_response(list_page(graph, EXPERIMENTS, params, "experiments", _list_response))


@router.get("/experiments/{experiment_id}")
def get(service: ServiceDep, params: UrlFields) -> Response:
    with service.graph() as graph:
        return json_response(
            _experiment_response(experiments.get(graph, params.id("experiment_id")))
        )


@router.delete("/experiments/{experiment_id}")
def delete(service: ServiceDep, params: UrlFields) -> Response:
    with service.graph() as graph:
        experiments.delete(graph, params.id("experiment_id"))
    return empty_response()


@router.post("/experiments/{experiment_id}:archive")
def archive(service: ServiceDep, params: UrlFields) -> Response:
    with service.graph() as graph:
        experiments.archive(graph, params.id("experiment_id"))
    return empty_response()


@router.post("/experiments/{experiment_id}:unarchive")
def unarchive(service: ServiceDep, params: UrlFields) -> Response:
    with service.graph() as graph:
        experiments.unarchive(graph, params.id("experiment_id"))
    return empty_response()
