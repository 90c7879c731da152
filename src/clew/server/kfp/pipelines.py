"""`/pipelines` and their versions; `uploads` takes packages of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from clew.db.connection import Row
from clew.errors import UsageError
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.server.catalogue import pipeline_specs, pipelines, versions
from clew.server.catalogue.list_fields import PIPELINES, VERSIONS
from clew.server.catalogue.pipelines import Pipeline
from clew.server.catalogue.versions import Metadata, Version
from clew.server.kfp.list_query import list_page
from clew.server.kfp.request_fields import MAX_NAME, BodyFields, Fields, ServiceDep, UrlFields
from clew.server.kfp.responses import empty_response, json_response, without_empty
from clew.server.parsing import compiled_pipelines

router = APIRouter()


def pipeline_response(found: Pipeline) -> dict[str, Any]:
    return without_empty(
        pipeline_id=found.id,
        name=found.name,
        display_name=found.display_name,
        description=found.description,
        created_at=format_time(found.created),
        tags=found.tags,
    )


def version_response(found: Version, text: str) -> dict[str, Any]:
    return without_empty(
        pipeline_id=found.pipeline,
        pipeline_version_id=found.id,
        name=found.name,
        display_name=found.display_name,
        description=found.description,
        created_at=format_time(found.created),
        pipeline_spec=compiled_pipelines.to_response(text),
        tags=found.tags,
    )


def read_metadata(sent: Fields, *, otherwise: str = "") -> Metadata:
    """What something shall be called: by a name, or by how it is shown, or else `otherwise`."""
    display_name = sent.text("display_name", longest=MAX_NAME)
    name = sent.text("name", longest=MAX_NAME) or display_name or otherwise
    return Metadata(
        name=Fields({"name": name}).named("name"),
        display_name=display_name,
        description=sent.text("description"),
        tags=sent.pairs("tags"),
    )


def _spec(sent: Fields) -> str:
    if (found := sent.value("pipeline_spec")) is not None:
        return compiled_pipelines.normalize_object(found)
    raise UsageError(
        "no pipeline_spec was sent; packages elsewhere are not fetched",
        hint="POST the package to /apis/v2beta1/pipelines/upload_version",
    )


def _changed(sent: Fields, found: Any) -> Any:
    """With what was sent instead of what it was."""
    name = sent.text("display_name", longest=MAX_NAME)
    said = None if sent.value("description") is None else sent.text("description")
    tags = None if sent.value("tags") is None else sent.pairs("tags")
    return replace(
        found,
        display_name=name or found.display_name,
        description=found.description if said is None else said,
        tags=found.tags if tags is None else tags,
    )


@router.post("/pipelines")
def create(service: ServiceDep, sent: BodyFields) -> Response:
    with service.graph() as graph:
        made = pipelines.create(graph, read_metadata(sent))
        return json_response(pipeline_response(pipelines.get(graph, made)))


@router.post("/pipelines/create")
def create_with_version(service: ServiceDep, sent: BodyFields) -> Response:
    called, first = sent.part("pipeline") or Fields({}), sent.part("pipeline_version") or Fields({})
    spec = _spec(first)
    with service.graph() as graph:
        made = pipelines.create(graph, read_metadata(called), spec=spec)
        return json_response(pipeline_response(pipelines.get(graph, made)))


@router.get("/pipelines")
def list_(service: ServiceDep, asked: UrlFields) -> Response:
    def show(rows: list[Row]) -> list[dict[str, Any]]:
        return [pipeline_response(pipelines.from_row(row)) for row in rows]

    with service.graph() as graph:
        return json_response(list_page(graph, PIPELINES, asked, "pipelines", show))


@router.get("/pipelines/names/{name:path}")
def by_name(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        return json_response(pipeline_response(pipelines.get_by_name(graph, asked.named("name"))))


@router.get("/pipelines/{pipeline_id}")
def get(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        return json_response(pipeline_response(pipelines.get(graph, asked.id("pipeline_id"))))


@router.patch("/pipelines/{pipeline_id}")
def update(service: ServiceDep, asked: UrlFields, sent: BodyFields) -> Response:
    with service.graph() as graph:
        changed = _changed(sent, pipelines.get(graph, asked.id("pipeline_id")))
        pipelines.update(graph, changed)
        return json_response(pipeline_response(changed))


@router.delete("/pipelines/{pipeline_id}")
def delete(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        pipelines.delete(graph, asked.id("pipeline_id"), cascade=asked.flag("cascade"))
    return empty_response()


@router.post("/pipelines/{pipeline_id}/versions")
def create_version(service: ServiceDep, asked: UrlFields, sent: BodyFields) -> Response:
    spec = _spec(sent)
    with service.graph() as graph:
        of = asked.id("pipeline_id")
        made = pipelines.add_version(graph, of, read_metadata(sent), spec=spec)
        return json_response(version_response(versions.get(graph, of, made), spec))


@router.get("/pipelines/{pipeline_id}/versions")
def list_versions(service: ServiceDep, asked: UrlFields) -> Response:
    of = asked.id("pipeline_id")
    with service.graph() as graph:
        pipelines.get(graph, of)

        def show(rows: list[Row]) -> list[dict[str, Any]]:
            found = [versions.from_row(row) for row in rows]
            texts = pipeline_specs.texts_of(graph, {one.spec for one in found})
            return [version_response(one, texts[one.spec]) for one in found]

        document = list_page(graph, VERSIONS, asked, "pipeline_versions", show, pipeline=of)
        return json_response(document)


@router.get("/pipelines/{pipeline_id}/versions/{pipeline_version_id}")
def get_version(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        return json_response(_version(graph, asked))


@router.patch("/pipelines/{pipeline_id}/versions/{pipeline_version_id}")
def update_version(service: ServiceDep, asked: UrlFields, sent: BodyFields) -> Response:
    with service.graph() as graph:
        of, which = asked.id("pipeline_id"), asked.id("pipeline_version_id")
        versions.update(graph, _changed(sent, versions.get(graph, of, which)))
        return json_response(_version(graph, asked))


@router.delete("/pipelines/{pipeline_id}/versions/{pipeline_version_id}")
def delete_version(service: ServiceDep, asked: UrlFields) -> Response:
    with service.graph() as graph:
        versions.delete(graph, asked.id("pipeline_id"), asked.id("pipeline_version_id"))
    return empty_response()


def _version(graph: Graph, asked: Fields) -> dict[str, Any]:
    found = versions.get(graph, asked.id("pipeline_id"), asked.id("pipeline_version_id"))
    return version_response(found, pipeline_specs.text_of(graph, found.spec))
