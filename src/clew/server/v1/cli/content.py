"""Commands that give bytes: a version, an export, what an execution left.

Bytes come behind one line of JSON that says what is to be known of them; a folder comes as a tar.
"""

from __future__ import annotations

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
from clew.api.remote.client_paths import ClientPaths
from clew.run import execution_locks
from clew.server.service import Service
from clew.server.v1.cli.queries import parse_request
from clew.store import Store

router = APIRouter(prefix="/api/v1/commands", include_in_schema=False)

_PIECE = 1 << 18


class _Content(msgspec.Struct):
    target: str
    asker: ClientPaths


class _Export(msgspec.Struct):
    id: str
    format: str


class _Left(msgspec.Struct):
    id: str


@router.post("/content")
async def content(request: Request) -> Response:
    """The bytes of a version."""
    asked: _Content = parse_request(await request.body(), _Content)
    service: Service = request.app.state.service

    def work() -> Response:
        with service.project() as project:
            found = find_stored(project, asked.target, asked.asker.here())
        with Store(service.folder.store) as store:
            check_stored(store, found)
        assert found.digest is not None
        return _behind({"digest": found.digest}, _read(service.folder.store, found.digest))

    return await run_in_threadpool(work)


@router.post("/export")
async def export(request: Request) -> Response:
    asked: _Export = parse_request(await request.body(), _Export)
    said: list[str] = []

    def make(project: LocalProject, place: Path) -> None:
        project.export(asked.id, format=asked.format, to=place, say=said.append)

    return await run_in_threadpool(lambda: _made(request.app.state.service, make, {"said": said}))


@router.post("/left")
async def left(request: Request) -> Response:
    """What an execution left, laid out in a folder."""
    asked: _Left = parse_request(await request.body(), _Left)

    def make(project: LocalProject, place: Path) -> None:
        place.mkdir()
        write_outputs(project, project.execution(asked.id).uid, place)

    return await run_in_threadpool(lambda: _made(request.app.state.service, make, {}))


def _made(
    service: Service, make: Callable[[LocalProject, Path], None], known: dict[str, Any]
) -> Response:
    """What is made in a folder of its own, to be sent."""
    scratch, lock = execution_locks.create_scratch(service.folder, secrets.token_hex(8))
    try:
        place = scratch / "made"
        with service.project() as project:
            make(project, place)
        folder = place.is_dir()
        if folder:
            with tarfile.open(scratch / "tar", "w") as tar:
                tar.add(place, arcname=".")
            place = scratch / "tar"
        file = place.open("rb")  # what is open can still be read when it is gone
        return _behind({**known, "folder": folder}, iter(lambda: file.read(_PIECE), b""))
    finally:
        execution_locks.remove_tree(scratch)
        os.close(lock)


def _behind(known: dict[str, Any], pieces: Iterator[bytes]) -> Response:
    def every() -> Iterator[bytes]:
        yield json.dumps(known).encode() + b"\n"
        yield from pieces

    return StreamingResponse(every(), media_type="application/octet-stream")


def _read(place: Path, digest: str) -> Iterator[bytes]:
    with Store(place) as store:
        yield from store.read(digest)
