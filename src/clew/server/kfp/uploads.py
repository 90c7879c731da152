"""`/pipelines/upload`: packages, as one file of a form.

The file goes to the disk as it comes, and is looked at when it is whole; what is made of it is
made in one transaction. So an upload that breaks off leaves nothing.
"""

from __future__ import annotations

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
from clew.server.service import Service

router = APIRouter()
_PART = "uploadfile"
_ENDINGS = (".tar.gz", ".tgz", ".yaml", ".yml", ".zip")
Work = Callable[[Service, Fields, str, IO[bytes]], dict[str, Any]]


@router.post("/pipelines/upload")
async def upload(request: Request, service: ServiceDep, asked: UrlFields) -> Response:
    return await _taken(request, service, asked, _pipeline)


@router.post("/pipelines/upload_version")
async def upload_version(request: Request, service: ServiceDep, asked: UrlFields) -> Response:
    return await _taken(request, service, asked, _version)


async def _taken(request: Request, service: Service, asked: Fields, work: Work) -> Response:
    try:
        async with request.form(max_files=1, max_fields=8) as form:
            part = form.get(_PART)
            if not isinstance(part, UploadFile):
                raise UsageError(f"there is no file in the form: the part {_PART} is missing")
            if part.size is not None and part.size > pipeline_packages.MAX_BYTES:
                raise HTTPException(
                    413, f"the file is larger than {pipeline_packages.MAX_BYTES >> 20} MB"
                )
            name = part.filename or ""
            return json_response(await run_in_threadpool(work, service, asked, name, part.file))
    except ClientDisconnect as error:
        raise UsageError("the upload broke off") from error


def _pipeline(service: Service, asked: Fields, name: str, file: IO[bytes]) -> dict[str, Any]:
    called = read_metadata(asked, otherwise=_stem(name))
    spec = pipeline_packages.read_package(file)
    with service.graph() as graph:
        return pipeline_response(pipelines.get(graph, pipelines.create(graph, called, spec=spec)))


def _version(service: Service, asked: Fields, name: str, file: IO[bytes]) -> dict[str, Any]:
    of = asked.id("pipelineid")
    if not of:
        raise UsageError("pipelineid is missing: the pipeline that this is a version of")
    called = read_metadata(asked, otherwise=_stem(name))
    spec = pipeline_packages.read_package(file)
    with service.graph() as graph:
        made = pipelines.add_version(graph, of, called, spec=spec)
        return version_response(versions.get(graph, of, made), spec)


def _stem(name: str) -> str:
    """The name of a file without what says how it is packed."""
    ending = next((one for one in _ENDINGS if name.lower().endswith(one)), "")
    return name.removesuffix(name[-len(ending) :] if ending else "")
