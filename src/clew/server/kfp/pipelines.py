"""`/pipelines` and their versions; `uploads` takes packages of them."""

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from clew.db.connection_interface import Row
from clew.errors import UsageError
from clew.pipelines.runs import pipeline_specs
from clew.prov.graph import Graph
from clew.prov.queries.formats import format_time
from clew.server.catalogue.list_fields import PIPELINES, VERSIONS
from clew.server.catalogue.pipelines import pipelines, versions
from clew.server.catalogue.pipelines.pipelines import Pipeline
from clew.server.catalogue.pipelines.versions import Metadata, Version
from clew.server.kfp.list_query import list_page
from clew.server.kfp.request_fields import MAX_NAME, BodyFields, Fields, ServiceDep, UrlFields
from clew.server.kfp.responses import Document, GraphRouter, json_response, without_empty
from clew.server.parsers import compiled_pipelines

router = GraphRouter()


def pipeline_response(pipeline: Pipeline) -> Document:
    return without_empty(
        pipeline_id=pipeline.id,
        name=pipeline.name,
        display_name=pipeline.display_name,
        description=pipeline.description,
        created_at=format_time(pipeline.created),
        tags=pipeline.tags,
    )


def version_response(version: Version, text: str) -> Document:
    return without_empty(
        pipeline_id=version.pipeline,
        pipeline_version_id=version.id,
        name=version.name,
        display_name=version.display_name,
        description=version.description,
        created_at=format_time(version.created),
        pipeline_spec=compiled_pipelines.to_response(text),
        tags=version.tags,
    )


def read_metadata(body: Fields, *, default: str = "") -> Metadata:
    """The metadata of a new object; `name` falls back to `display_name`, then to `default`."""
    display_name = body.text("display_name", max_length=MAX_NAME)
    name = body.text("name", max_length=MAX_NAME) or display_name or default
    return Metadata(
        name=Fields({"name": name}).required_name("name"),
        display_name=display_name,
        description=body.text("description"),
        tags=body.string_map("tags"),
    )


def _read_spec(body: Fields) -> str:
    if (spec := body.value("pipeline_spec")) is not None:
        return compiled_pipelines.normalize_object(spec)
    raise UsageError(
        "pipeline_spec is missing; packages at other addresses are not downloaded",
        hint="POST the package to /apis/v2beta1/pipelines/upload_version",
    )


def _with_changes(body: Fields, stored: Any) -> Any:
    """`stored` with the fields that the body contains."""
    name = body.text("display_name", max_length=MAX_NAME)
    changed = replace(stored, display_name=name or stored.display_name)
    if body.value("description") is not None:
        changed = replace(changed, description=body.text("description"))
    if body.value("tags") is not None:
        changed = replace(changed, tags=body.string_map("tags"))
    return changed


@router.post("/pipelines")
def create(service: ServiceDep, body: BodyFields) -> Response:
    with service.graph() as graph:
        created = pipelines.create(graph, read_metadata(body))
        return json_response(pipeline_response(pipelines.get(graph, created)))


@router.post("/pipelines/create")
def create_with_version(service: ServiceDep, body: BodyFields) -> Response:
    spec = _read_spec(body.object("pipeline_version") or Fields({}))
    with service.graph() as graph:
        metadata = read_metadata(body.object("pipeline") or Fields({}))
        created = pipelines.create(graph, metadata, spec=spec)
        return json_response(pipeline_response(pipelines.get(graph, created)))


@router.route_to_graph("GET", "/pipelines")
def list_all(graph: Graph, params: Fields) -> Document:
    def show(rows: list[Row]) -> list[Document]:
        return [pipeline_response(pipelines.from_row(row)) for row in rows]

    return list_page(graph, PIPELINES, params, "pipelines", show)


@router.route_to_graph("GET", "/pipelines/names/{name:path}")
def get_by_name(graph: Graph, params: Fields) -> Document:
    return pipeline_response(pipelines.get_by_name(graph, params.required_name("name")))


@router.route_to_graph("GET", "/pipelines/{pipeline_id}")
def get(graph: Graph, params: Fields) -> Document:
    return pipeline_response(pipelines.get(graph, params.id("pipeline_id")))


@router.patch("/pipelines/{pipeline_id}")
def update(service: ServiceDep, params: UrlFields, body: BodyFields) -> Response:
    with service.graph() as graph:
        changed = _with_changes(body, pipelines.get(graph, params.id("pipeline_id")))
        pipelines.update(graph, changed)
        return json_response(pipeline_response(changed))


@router.route_to_graph("DELETE", "/pipelines/{pipeline_id}")
def delete(graph: Graph, params: Fields) -> None:
    pipelines.delete(graph, params.id("pipeline_id"), cascade=params.flag("cascade"))


@router.post("/pipelines/{pipeline_id}/versions")
def create_version(service: ServiceDep, params: UrlFields, body: BodyFields) -> Response:
    spec = _read_spec(body)
    with service.graph() as graph:
        pipeline = params.id("pipeline_id")
        created = pipelines.add_version(graph, pipeline, read_metadata(body), spec=spec)
        return json_response(version_response(versions.get(graph, pipeline, created), spec))


@router.route_to_graph("GET", "/pipelines/{pipeline_id}/versions")
def list_versions(graph: Graph, params: Fields) -> Document:
    def show(rows: list[Row]) -> list[Document]:
        listed = [versions.from_row(row) for row in rows]
        texts = pipeline_specs.texts_of(graph, {version.spec for version in listed})
        return [version_response(version, texts[version.spec]) for version in listed]

    pipeline = pipelines.get(graph, params.id("pipeline_id")).id
    return list_page(graph, VERSIONS, params, "pipeline_versions", show, pipeline=pipeline)


@router.route_to_graph("GET", "/pipelines/{pipeline_id}/versions/{pipeline_version_id}")
def get_version(graph: Graph, params: Fields) -> Document:
    version = versions.get(graph, params.id("pipeline_id"), params.id("pipeline_version_id"))
    return version_response(version, pipeline_specs.text_of(graph, version.spec))


@router.patch("/pipelines/{pipeline_id}/versions/{pipeline_version_id}")
def update_version(service: ServiceDep, params: UrlFields, body: BodyFields) -> Response:
    with service.graph() as graph:
        pipeline, version = params.id("pipeline_id"), params.id("pipeline_version_id")
        versions.update(graph, _with_changes(body, versions.get(graph, pipeline, version)))
        return json_response(get_version(graph, params) or {})


@router.route_to_graph("DELETE", "/pipelines/{pipeline_id}/versions/{pipeline_version_id}")
def delete_version(graph: Graph, params: Fields) -> None:
    versions.delete(graph, params.id("pipeline_id"), params.id("pipeline_version_id"))
