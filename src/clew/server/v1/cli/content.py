"""Commands that download content: a version, an export, the outputs of an execution.

The response is one line of JSON with the metadata, then the bytes; a directory is sent as a tar.
"""

import json
import os
import secrets
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from clew.api.local.project import LocalProject
from clew.api.local.repeat import write_outputs
from clew.api.local.versions import check_stored, find_stored
from clew.api.remote.caller_paths import ClientPaths
from clew.documents.ids import Digest
from clew.run import spool_directories
from clew.server.server_state import Service
from clew.server.v1.cli.queries import parse_request
from clew.store import Store

router = APIRouter(prefix="/api/v1/commands", include_in_schema=False)

_READ_BYTES = 1 << 18


class _Content(msgspec.Struct):
    target: str
    asker: ClientPaths


class _Export(msgspec.Struct):
    id: str
    format: str


class _Outputs(msgspec.Struct):
    id: str


@router.post("/content")
async def content(request: Request) -> Response:
    """The content of a version."""
    command: _Content = parse_request(await request.body(), _Content)
    service: Service = request.app.state.service

    def work() -> Response:
        with service.project() as project:
            version = find_stored(project, command.target, command.asker.here())
        with Store(service.directory.store) as store:
            check_stored(project, store, version)
        assert version.digest is not None
        return _respond({"digest": version.digest}, _read(service.directory.store, version.digest))

    return await run_in_threadpool(work)


@router.post("/export")
async def export(request: Request) -> Response:
    command: _Export = parse_request(await request.body(), _Export)
    said: list[str] = []

    def make(project: LocalProject, path: Path) -> None:
        project.export(command.id, format=command.format, to=path, say=said.append)

    return await run_in_threadpool(
        lambda: _send_result(request.app.state.service, make, {"said": said})
    )


@router.post("/left")
async def left(request: Request) -> Response:
    """The outputs of an execution, as a directory."""
    command: _Outputs = parse_request(await request.body(), _Outputs)

    def make(project: LocalProject, path: Path) -> None:
        path.mkdir()
        write_outputs(project, project.execution(command.id).uid, path)

    return await run_in_threadpool(lambda: _send_result(request.app.state.service, make, {}))


def _send_result(
    service: Service, make: Callable[[LocalProject, Path], None], metadata: dict[str, Any]
) -> Response:
    """Let `make` write a file or directory in a scratch directory, and send it."""
    scratch, lock = spool_directories.create_scratch(service.directory, secrets.token_hex(8))
    try:
        path = scratch / "result"
        with service.project() as project:
            make(project, path)
        folder = path.is_dir()
        if folder:
            with tarfile.open(scratch / "tar", "w") as tar:
                tar.add(path, arcname=".")
            path = scratch / "tar"
        file = path.open("rb")  # stays readable after the scratch directory is removed
        return _respond({**metadata, "folder": folder}, iter(lambda: file.read(_READ_BYTES), b""))
    finally:
        spool_directories.remove_tree(scratch)
        os.close(lock)


def _respond(metadata: dict[str, Any], pieces: Iterator[bytes]) -> Response:
    def stream() -> Iterator[bytes]:
        yield json.dumps(metadata).encode() + b"\n"
        yield from pieces

    return StreamingResponse(stream(), media_type="application/octet-stream")


def _read(path: Path, digest: Digest) -> Iterator[bytes]:
    with Store(path) as store:
        yield from store.read(digest)
