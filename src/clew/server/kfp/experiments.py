"""`/experiments`."""

from __future__ import annotations

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


def _shown(found: Experiment) -> dict[str, Any]:
    return without_empty(
        experiment_id=found.id,
        display_name=found.name,
        description=found.description,
        created_at=format_time(found.created),
        last_run_created_at=format_time(found.last_run),
        storage_state="ARCHIVED" if found.archived else "AVAILABLE",
    )


def _rows(rows: list[Row]) -> list[dict[str, Any]]:
    return [_shown(experiments.from_row(row)) for row in rows]


@router.post("/experiments")
def create(service: ServiceDep, asked: BodyFields) -> Response:
    name, description = asked.named("display_name"), asked.text("description")
    with service.graph() as graph:
        made = experiments.create(graph, name, description)
        return json_response(_shown(experiments.get(graph, made)))


@router.get("/experiments")
def list_(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        return json_response(list_page(graph, EXPERIMENTS, asked, "experiments", _rows))


@router.get("/experiments/{experiment_id}")
def get(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        return json_response(_shown(experiments.get(graph, asked.id("experiment_id"))))


@router.delete("/experiments/{experiment_id}")
def delete(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        experiments.delete(graph, asked.id("experiment_id"))
    return empty_response()


@router.post("/experiments/{experiment_id}:archive")
def archive(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        experiments.archive(graph, asked.id("experiment_id"))
    return empty_response()


@router.post("/experiments/{experiment_id}:unarchive")
def unarchive(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        experiments.unarchive(graph, asked.id("experiment_id"))
    return empty_response()
