"""`/pipelines/upload`: packages, uploaded as a file in a form: YAML, plain or in a zip or tar.gz.

The file is written to disk as it arrives, then parsed, and its pipeline stored in one transaction.
So an interrupted upload leaves nothing behind. The first bytes tell the format. Unpacking stops at
the size limit of a pipeline, whatever sizes the archive declares.
"""

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from clew.bounded_tar import BoundedTar
from clew.errors import UsageError
from clew.server.catalogue.pipelines import pipelines, versions
from clew.server.kfp.pipelines import pipeline_response, read_metadata, version_response
from clew.server.kfp.request_fields import Fields, ServiceDep, UrlFields
from clew.server.kfp.responses import json_response
from clew.server.parsers import compiled_pipelines
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
            if part.size is not None and part.size > MAX_BYTES:
                raise HTTPException(413, f"the file is larger than {MAX_BYTES >> 20} MB")
            name = part.filename or ""
            return json_response(await run_in_threadpool(work, service, params, name, part.file))
    except ClientDisconnect as error:
        raise UsageError("the client disconnected during the upload") from error


def _add_pipeline(service: Service, params: Fields, name: str, file: IO[bytes]) -> dict[str, Any]:
    metadata = read_metadata(params, default=_stem(name))
    spec = read_package(file)
    with service.graph() as graph:
        return pipeline_response(pipelines.get(graph, pipelines.create(graph, metadata, spec=spec)))


def _add_version(service: Service, params: Fields, name: str, file: IO[bytes]) -> dict[str, Any]:
    pipeline = params.id("pipelineid")
    if not pipeline:
        raise UsageError("pipelineid is missing: the id of the version's pipeline")
    metadata = read_metadata(params, default=_stem(name))
    spec = read_package(file)
    with service.graph() as graph:
        created = pipelines.add_version(graph, pipeline, metadata, spec=spec)
        return version_response(versions.get(graph, pipeline, created), spec)


def _stem(name: str) -> str:
    """The name of a file without the suffixes of packages."""
    ending = next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)), "")
    return name.removesuffix(name[-len(ending) :] if ending else "")


MAX_BYTES = 32 << 20
"""The largest package, and the largest pipeline in it."""
_MAX_UNPACKED_BYTES = 256 << 20
"""How much of a tar is read to find the pipeline."""
_YAML = (".yaml", ".yml")
_DEFAULT_NAME = "pipeline.yaml"
"""The pipeline, if the archive contains several YAML files."""
_ZIP_ENTRY = b"PK\x01\x02"
_HINT = "upload what the kfp SDK compiles: .yaml, .yml, .zip or .tar.gz"


def read_package(file: IO[bytes]) -> str:
    """The pipeline in a package, as the text that the catalogue stores."""
    first = file.read(4)
    file.seek(0)
    try:
        if first[:2] == b"\x1f\x8b":
            data = _from_tar(file)
        elif first == b"PK\x03\x04":
            data = _from_zip(file)
        else:
            data = _read_limited(file)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError) as error:
        raise UsageError(f"the package cannot be unpacked: {error}", hint=_HINT) from error
    except (NotImplementedError, RuntimeError) as error:  # unsupported compression, or a password
        raise UsageError(f"the package cannot be unpacked: {error}", hint=_HINT) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("the pipeline is not UTF-8 text", hint=_HINT) from error
    return compiled_pipelines.normalize_text(text)


def _from_zip(file: IO[bytes]) -> bytes:
    if file.read().count(_ZIP_ENTRY) > BoundedTar.most_members:
        raise UsageError("the package contains too many files", hint=_HINT)
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
        with archive.open(_find_pipeline(names)) as member:
            return _read_limited(member)


def _from_tar(file: IO[bytes]) -> bytes:
    names: list[str] = []
    first = b""
    unpacked = _LimitedGzip(fileobj=file, mode="rb")
    with BoundedTar.open(fileobj=unpacked, mode="r|") as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            content = archive.extractfile(member) if name.endswith(_YAML) else None
            if content is None:
                continue
            names.append(name)
            if name == _DEFAULT_NAME:
                return _read_limited(content)
            first = first or _read_limited(content)
    _find_pipeline(names)
    return first


class _LimitedGzip(gzip.GzipFile):
    """Fails when the unpacked data becomes too large."""

    _left = _MAX_UNPACKED_BYTES

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._left -= len(data)
        if self._left < 0:
            raise UsageError("the unpacked package is too large", hint=_HINT)
        return data


def _find_pipeline(names: list[str]) -> str:
    yaml_names = [name for name in names if name.endswith(_YAML)]
    if _DEFAULT_NAME in yaml_names:
        return _DEFAULT_NAME
    if len(yaml_names) != 1:
        what = "several YAML files and no pipeline.yaml" if yaml_names else "no YAML file"
        raise UsageError(f"the package contains {what}", hint=_HINT)
    return yaml_names[0]


def _read_limited(file: IO[bytes]) -> bytes:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"the pipeline is larger than {MAX_BYTES >> 20} MB", hint=_HINT)
    return data
