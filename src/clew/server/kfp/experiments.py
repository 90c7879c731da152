"""`/experiments`."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from clew.db.connection import Row
from clew.prov.queries.formats import moment
from clew.server.catalogue import experiments
from clew.server.catalogue.experiments import Experiment
from clew.server.catalogue.list_fields import EXPERIMENTS
from clew.server.kfp.list_query import listed
from clew.server.kfp.request_fields import Address, Body, Served
from clew.server.kfp.responses import answer, nothing, shown

router = APIRouter()


def _shown(found: Experiment) -> dict[str, Any]:
    return shown(
        experiment_id=found.id,
        display_name=found.name,
        description=found.description,
        created_at=moment(found.created),
        last_run_created_at=moment(found.last_run),
        storage_state="ARCHIVED" if found.archived else "AVAILABLE",
    )


def _rows(rows: list[Row]) -> list[dict[str, Any]]:
    return [_shown(experiments.read(row)) for row in rows]


@router.post("/experiments")
def create(service: Served, asked: Body) -> Response:
    name, description = asked.named("display_name"), asked.text("description")
    with service.graph() as graph:
        made = experiments.create(graph, name, description)
        return answer(_shown(experiments.get(graph, made)))


@router.get("/experiments")
def list_(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        return answer(listed(graph, EXPERIMENTS, asked, "experiments", _rows))


@router.get("/experiments/{experiment_id}")
def get(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        return answer(_shown(experiments.get(graph, asked.id("experiment_id"))))


@router.delete("/experiments/{experiment_id}")
def delete(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        experiments.delete(graph, asked.id("experiment_id"))
    return nothing()


@router.post("/experiments/{experiment_id}:archive")
def archive(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        experiments.archive(graph, asked.id("experiment_id"))
    return nothing()


@router.post("/experiments/{experiment_id}:unarchive")
def unarchive(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        experiments.unarchive(graph, asked.id("experiment_id"))
    return nothing()
