"""Commands that run others again: each in a process of its own, told of as it goes.

An answer is lines of JSON: {said}, what Clew says; {printed, to}, what the command prints, in
base64, and to which descriptor; {} now and then; and at the end {answer} or {error}. Who goes away
ends it, and who is slow to read slows it down.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from clew.errors import ClewError
from clew.server import command_worker
from clew.server.service import Service
from clew.server.v1.cli.queries import parse_request
from clew.settings import without_own

router = APIRouter(prefix="/api/v1/commands", include_in_schema=False)

_PIECE = 1 << 16
_BEAT = 5.0
"""Seconds after which something is said even if there is nothing to say."""
_LONGEST = 64 << 20
"""Bytes of a line that is said: the answer is one."""
_WAITING = 16
"""Lines that wait for a reader; then the command does."""

Transfer = Annotated[str, Query(alias="for", max_length=100)]


@router.post("/repeat")
async def repeat(request: Request, transfer: Transfer = "") -> Response:
    return await _done(request, command_worker.Repeat, transfer)


@router.post("/confirm")
async def confirm(request: Request, transfer: Transfer = "") -> Response:
    return await _done(request, command_worker.Confirm, transfer)


@router.post("/commit")
async def commit(request: Request, transfer: Transfer = "") -> Response:
    return await _done(request, command_worker.Commit, transfer)


@router.post("/recreate")
async def recreate(request: Request, transfer: Transfer = "") -> Response:
    return await _done(request, command_worker.Recreate, transfer)


async def _done(request: Request, kind: type[msgspec.Struct], transfer: str) -> Response:
    task = parse_request(await request.body(), kind)
    said = _told(request, json.dumps(msgspec.to_builtins(task, str_keys=True)), transfer)
    return StreamingResponse(said, media_type="application/x-ndjson")


async def _told(request: Request, task: str, transfer: str) -> AsyncIterator[bytes]:
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)
    process, saying = await _started(request.app.state.service)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(task.encode() + b"\n")
    heard = [
        asyncio.create_task(_pass_on(process.stdout, 1, lines)),
        asyncio.create_task(_pass_on(process.stderr, 2, lines)),
    ]
    ending = asyncio.create_task(_end(saying, heard, lines))
    try:
        while (line := await _next(lines)) is not None:
            yield line + b"\n"
        await process.wait()
    finally:
        for one in (*heard, ending):
            one.cancel()
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        request.app.state.intake.end(transfer)


async def _started(service: Service) -> tuple[asyncio.subprocess.Process, asyncio.StreamReader]:
    """The process, and what Clew says in it."""
    environ = without_own()
    environ["CLEW_PROJECT"] = str(service.folder.root)
    if service.settings.graph:
        environ["CLEW_GRAPH"] = service.settings.graph
    ours, theirs = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "clew.server.command_worker", str(theirs)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=service.folder.root,
            env=environ,
            start_new_session=True,
            pass_fds=(theirs,),
            limit=_PIECE,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    saying = asyncio.StreamReader(limit=_LONGEST)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(saying), os.fdopen(ours, "rb")
    )
    return process, saying


async def _pass_on(
    stream: asyncio.StreamReader, descriptor: int, lines: asyncio.Queue[bytes | None]
) -> None:
    while data := await stream.read(_PIECE):
        printed = {"printed": b64encode(data).decode(), "to": descriptor}
        await lines.put(json.dumps(printed).encode())


async def _end(
    saying: asyncio.StreamReader,
    heard: list[asyncio.Task[None]],
    lines: asyncio.Queue[bytes | None],
) -> None:
    """What Clew says; the last of it, the answer, after all that was printed."""
    last: bytes | None = None
    try:
        while line := await saying.readline():
            if last is not None:
                await lines.put(last)
            last = line.rstrip(b"\n")
    except ValueError:
        said = ClewError(f"the answer is longer than {_LONGEST} bytes", hint="ask on the server")
        last = json.dumps(said.as_json()).encode()
    await asyncio.gather(*heard)
    await lines.put(last)
    if last is not None:
        await lines.put(None)


async def _next(lines: asyncio.Queue[bytes | None]) -> bytes | None:
    """The next line; an empty document when it takes long; None at the end."""
    try:
        async with asyncio.timeout(_BEAT):
            return await lines.get()
    except TimeoutError:
        return b"{}"
