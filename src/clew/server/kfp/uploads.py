"""`/pipelines/upload`: packages, uploaded as a file in a form.

The file is written to disk as it arrives, then parsed, and its pipeline stored in one transaction.
So an interrupted upload leaves nothing behind.
"""

from collections.abc import Callable
from typing import IO, Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from clew.errors import UsageError
from clew.server.catalogue import pipelines, versions
from clew.server.kfp import pipeline_packages
from clew.server.kfp.pipelines import pipeline_response, read_metadata, version_response
from clew.server.kfp.request_fields import Fields, ServiceDep, UrlFields
from clew.server.kfp.responses import json_response
from clew.server.server_state import Service

router = APIRouter()
_FORM_FIELD = "uploadfile"
_SUFFIXES = (".tar.gz", ".tgz", ".yaml", ".yml", ".zip")
Work = Callable[[Service, Fields, str, IO[bytes]], dict[str, Any]]


@router.post("/pipelines/upload")
async def upload(request: Request, service: ServiceDep, params: UrlFields) -> Response:
    return await _receive(request, service, params, _add_pipeline)


@router.post("/pipelines/upload_version")
async def upload_version(request: Request, service: ServiceDep, params: UrlFields) -> Response:
    return await _receive(request, service, params, _add_version)


async def _receive(request: Request, service: Service, params: Fields, work: Work) -> Response:
    try:
        async with request.form(max_files=1, max_fields=8) as form:
            part = form.get(_FORM_FIELD)
            if not isinstance(part, UploadFile):
                raise UsageError(f"the form has no file field {_FORM_FIELD}")
            if part.size is not None and part.size > pipeline_packages.MAX_BYTES:
                raise HTTPException(
                    413, f"the file is larger than {pipeline_packages.MAX_BYTES >> 20} MB"
                )
            name = part.filename or ""
            return json_response(await run_in_threadpool(work, service, params, name, part.file))
    except ClientDisconnect as error:
        raise UsageError("the client disconnected during the upload") from error


def _add_pipeline(service: Service, params: Fields, name: str, file: IO[bytes]) -> dict[str, Any]:
    metadata = read_metadata(params, default=_stem(name))
    spec = pipeline_packages.read_package(file)
    with service.graph() as graph:
        return pipeline_response(pipelines.get(graph, pipelines.create(graph, metadata, spec=spec)))


def _add_version(service: Service, params: Fields, name: str, file: IO[bytes]) -> dict[str, Any]:
    pipeline = params.id("pipelineid")
    if not pipeline:
        raise UsageError("pipelineid is missing: the id of the version's pipeline")
    metadata = read_metadata(params, default=_stem(name))
    spec = pipeline_packages.read_package(file)
    with service.graph() as graph:
        created = pipelines.add_version(graph, pipeline, metadata, spec=spec)
        return version_response(versions.get(graph, pipeline, created), spec)


def _stem(name: str) -> str:
    """The name of a file without the suffixes of packages."""
    ending = next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)), "")
    return name.removesuffix(name[-len(ending) :] if ending else "")
