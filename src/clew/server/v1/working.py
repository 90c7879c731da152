"""Commands that give bytes, or take long: a version, an export, a repeat.

Bytes come behind one line of JSON that says what is to be known of them; a folder comes as a tar.
What runs commands again runs in a process of its own, the command line itself, and what it says
comes line by line; who goes away ends it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
import tarfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from clew.api.project import Project
from clew.api.repeating import lay_out
from clew.api.versions import must_have, stored
from clew.run import locks
from clew.server.batches import Malformed
from clew.server.service import Service
from clew.server.v1.commands import Asker, words
from clew.store import Store

router = APIRouter(prefix="/api/v1/commands", include_in_schema=False)

_PIECE = 1 << 18
_BEAT = 5.0
"""Seconds after which something is said even if there is nothing to say."""
_LONGEST = 1 << 20
"""Bytes of a line that a command says."""


class _Content(msgspec.Struct):
    target: str
    asker: Asker


class _Export(msgspec.Struct):
    id: str
    format: str


class _Left(msgspec.Struct):
    id: str


class _Repeat(msgspec.Struct):
    id: str
    parameters: dict[str, str] = {}
    network: bool = False
    incremental: bool = False


class _Confirm(msgspec.Struct):
    a: str
    b: str


@router.post("/content")
async def content(request: Request) -> Response:
    """The bytes of a version."""
    asked: _Content = words(await request.body(), _Content)
    service: Service = request.app.state.service

    def work() -> Response:
        with service.project() as project:
            found = stored(project, asked.target, asked.asker.here())
        with Store(service.folder.store) as store:
            must_have(store, found)
        assert found.digest is not None
        return _behind({"digest": found.digest}, _read(service.folder.store, found.digest))

    return await run_in_threadpool(work)


@router.post("/export")
async def export(request: Request) -> Response:
    asked: _Export = words(await request.body(), _Export)
    said: list[str] = []

    def make(project: Project, place: Path) -> None:
        project.export(asked.id, format=asked.format, to=place, say=said.append)

    return await run_in_threadpool(lambda: _made(request.app.state.service, make, {"said": said}))


@router.post("/left")
async def left(request: Request) -> Response:
    """What an execution left, laid out in a folder."""
    asked: _Left = words(await request.body(), _Left)

    def make(project: Project, place: Path) -> None:
        place.mkdir()
        lay_out(project, project.execution(asked.id).uid, place)

    return await run_in_threadpool(lambda: _made(request.app.state.service, make, {}))


@router.post("/repeat")
async def repeat(request: Request) -> Response:
    """`clew repeat`: lines of JSON, {said} as it goes, then {answer}."""
    asked: _Repeat = words(await request.body(), _Repeat)
    options = [f"--set={number}={value}" for number, value in asked.parameters.items()]
    options += ["--network"] * asked.network + ["--incremental"] * asked.incremental
    return _telling(request, "repeat", *options, "--", asked.id)


@router.post("/confirm")
async def confirm(request: Request) -> Response:
    """`clew diff --confirm`, in the same way."""
    asked: _Confirm = words(await request.body(), _Confirm)
    return _telling(request, "diff", "--confirm", "--", asked.a, asked.b)


def _telling(request: Request, *given: str) -> Response:
    if any("\0" in word for word in given):
        raise Malformed("no word of a command holds a zero byte")
    said = _told(request.app.state.service, given)
    return StreamingResponse(said, media_type="application/x-ndjson")


def _made(
    service: Service, make: Callable[[Project, Path], None], known: dict[str, Any]
) -> Response:
    """What is made in a folder of its own, to be sent."""
    scratch, lock = locks.scratch(service.folder, secrets.token_hex(8))
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
        locks.discard(scratch)
        os.close(lock)


def _behind(known: dict[str, Any], pieces: Iterator[bytes]) -> Response:
    def every() -> Iterator[bytes]:
        yield json.dumps(known).encode() + b"\n"
        yield from pieces

    return StreamingResponse(every(), media_type="application/octet-stream")


def _read(place: Path, digest: str) -> Iterator[bytes]:
    with Store(place) as store:
        yield from store.read(digest)


async def _told(service: Service, given: Sequence[str]) -> AsyncIterator[bytes]:
    ours = {"CLEW_SERVER", "CLEW_TOKEN", "CLEW_GRAPH"}
    environ = {name: value for name, value in os.environ.items() if name not in ours}
    environ["CLEW_PROJECT"] = str(service.folder.root)
    if service.settings.graph:
        environ["CLEW_GRAPH"] = service.settings.graph
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "clew", given[0], "--json", *given[1:]),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=service.folder.root,
        env=environ,
        start_new_session=True,
        limit=_LONGEST,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    printed = asyncio.create_task(process.stdout.read())
    try:
        while (line := await _line(process.stderr)) != b"":
            yield json.dumps({"said": line.decode(errors="replace")} if line else {}).encode()
            yield b"\n"
        answer = json.loads(await printed or b"null")
        yield json.dumps({"answer": answer, "status": await process.wait()}).encode() + b"\n"
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)


async def _line(stream: asyncio.StreamReader) -> bytes | None:
    """The next line; None when it takes long; nothing at the end."""
    try:
        async with asyncio.timeout(_BEAT):
            return await stream.readline()
    except TimeoutError:
        return None
    except ValueError:
        return b"\n"  # a line that is too long is left out
