"""`/pipelines` and their versions; `uploads` takes packages of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from clew.db.connection import Row
from clew.errors import UsageError
from clew.prov.graph import Graph
from clew.prov.queries.formats import moment
from clew.server.catalogue import pipeline_specs, pipelines, versions
from clew.server.catalogue.list_fields import PIPELINES, VERSIONS
from clew.server.catalogue.pipelines import Pipeline
from clew.server.catalogue.versions import Asked, Version
from clew.server.kfp.list_query import listed
from clew.server.kfp.request_fields import LONGEST_NAME, Address, Body, Sent, Served
from clew.server.kfp.responses import answer, nothing, shown
from clew.server.parsing import compiled_pipelines

router = APIRouter()


def pipeline(found: Pipeline) -> dict[str, Any]:
    return shown(
        pipeline_id=found.id,
        name=found.name,
        display_name=found.display_name,
        description=found.description,
        created_at=moment(found.created),
        tags=found.tags,
    )


def version(found: Version, text: str) -> dict[str, Any]:
    return shown(
        pipeline_id=found.pipeline,
        pipeline_version_id=found.id,
        name=found.name,
        display_name=found.display_name,
        description=found.description,
        created_at=moment(found.created),
        pipeline_spec=compiled_pipelines.to_response(text),
        tags=found.tags,
    )


def asked_for(sent: Sent, *, otherwise: str = "") -> Asked:
    """What something shall be called: by a name, or by how it is shown, or else `otherwise`."""
    display_name = sent.text("display_name", longest=LONGEST_NAME)
    name = sent.text("name", longest=LONGEST_NAME) or display_name or otherwise
    return Asked(
        name=Sent({"name": name}).named("name"),
        display_name=display_name,
        description=sent.text("description"),
        tags=sent.pairs("tags"),
    )


def _spec(sent: Sent) -> str:
    if (found := sent.value("pipeline_spec")) is not None:
        return compiled_pipelines.normalize_object(found)
    raise UsageError(
        "no pipeline_spec was sent; packages elsewhere are not fetched",
        hint="POST the package to /apis/v2beta1/pipelines/upload_version",
    )


def _changed(sent: Sent, found: Any) -> Any:
    """With what was sent instead of what it was."""
    name = sent.text("display_name", longest=LONGEST_NAME)
    said = None if sent.value("description") is None else sent.text("description")
    tags = None if sent.value("tags") is None else sent.pairs("tags")
    return replace(
        found,
        display_name=name or found.display_name,
        description=found.description if said is None else said,
        tags=found.tags if tags is None else tags,
    )


@router.post("/pipelines")
def create(service: Served, sent: Body) -> Response:
    with service.graph() as graph:
        made = pipelines.create(graph, asked_for(sent))
        return answer(pipeline(pipelines.get(graph, made)))


@router.post("/pipelines/create")
def create_with_version(service: Served, sent: Body) -> Response:
    called, first = sent.part("pipeline") or Sent({}), sent.part("pipeline_version") or Sent({})
    spec = _spec(first)
    with service.graph() as graph:
        made = pipelines.create(graph, asked_for(called), spec=spec)
        return answer(pipeline(pipelines.get(graph, made)))


@router.get("/pipelines")
def list_(service: Served, asked: Address) -> Response:
    def show(rows: list[Row]) -> list[dict[str, Any]]:
        return [pipeline(pipelines.read(row)) for row in rows]

    with service.graph() as graph:
        return answer(listed(graph, PIPELINES, asked, "pipelines", show))


@router.get("/pipelines/names/{name:path}")
def by_name(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        return answer(pipeline(pipelines.by_name(graph, asked.named("name"))))


@router.get("/pipelines/{pipeline_id}")
def get(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        return answer(pipeline(pipelines.get(graph, asked.id("pipeline_id"))))


@router.patch("/pipelines/{pipeline_id}")
def update(service: Served, asked: Address, sent: Body) -> Response:
    with service.graph() as graph:
        changed = _changed(sent, pipelines.get(graph, asked.id("pipeline_id")))
        pipelines.update(graph, changed)
        return answer(pipeline(changed))


@router.delete("/pipelines/{pipeline_id}")
def delete(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        pipelines.delete(graph, asked.id("pipeline_id"), cascade=asked.flag("cascade"))
    return nothing()


@router.post("/pipelines/{pipeline_id}/versions")
def create_version(service: Served, asked: Address, sent: Body) -> Response:
    spec = _spec(sent)
    with service.graph() as graph:
        of = asked.id("pipeline_id")
        made = pipelines.add_version(graph, of, asked_for(sent), spec=spec)
        return answer(version(versions.get(graph, of, made), spec))


@router.get("/pipelines/{pipeline_id}/versions")
def list_versions(service: Served, asked: Address) -> Response:
    of = asked.id("pipeline_id")
    with service.graph() as graph:
        pipelines.get(graph, of)

        def show(rows: list[Row]) -> list[dict[str, Any]]:
            found = [versions.read(row) for row in rows]
            texts = pipeline_specs.texts_of(graph, {one.spec for one in found})
            return [version(one, texts[one.spec]) for one in found]

        document = listed(graph, VERSIONS, asked, "pipeline_versions", show, pipeline=of)
        return answer(document)


@router.get("/pipelines/{pipeline_id}/versions/{pipeline_version_id}")
def get_version(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        return answer(_version(graph, asked))


@router.patch("/pipelines/{pipeline_id}/versions/{pipeline_version_id}")
def update_version(service: Served, asked: Address, sent: Body) -> Response:
    with service.graph() as graph:
        of, which = asked.id("pipeline_id"), asked.id("pipeline_version_id")
        versions.update(graph, _changed(sent, versions.get(graph, of, which)))
        return answer(_version(graph, asked))


@router.delete("/pipelines/{pipeline_id}/versions/{pipeline_version_id}")
def delete_version(service: Served, asked: Address) -> Response:
    with service.graph() as graph:
        versions.delete(graph, asked.id("pipeline_id"), asked.id("pipeline_version_id"))
    return nothing()


def _version(graph: Graph, asked: Sent) -> dict[str, Any]:
    found = versions.get(graph, asked.id("pipeline_id"), asked.id("pipeline_version_id"))
    return version(found, pipeline_specs.text_of(graph, found.spec))
