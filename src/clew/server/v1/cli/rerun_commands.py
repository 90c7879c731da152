"""Commands that execute recorded programs again, each in a `rerun_worker` process.

The response is a stream of JSON lines: {said} is a message of Clew; {printed, to} is output of the
command in base64, and its file descriptor; {} is a keepalive; the last line is {answer} or {error}.
A client that disconnects ends the command, and one that reads slowly slows it down.
"""

import asyncio
import json
import os
import signal
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from clew.api.remote.messages import RerunCommand, encode_message
from clew.errors import ClewError
from clew.server.repeats.rerun_process import worker_command, worker_options
from clew.server.server_state import Service
from clew.server.v1.cli.queries import parse_request

router = APIRouter(prefix="/api/v1/commands", include_in_schema=False)

_READ_BYTES = 1 << 16
_KEEPALIVE_SECONDS = 5.0
_MAX_LINE_BYTES = 64 << 20
"""The limit for a line of JSON; the answer is one line."""
_MAX_QUEUED_LINES = 16
"""When the client is this far behind, the command waits."""

Transfer = Annotated[str, Query(alias="for", max_length=100)]


@router.post("/rerun")
async def rerun(request: Request, transfer: Transfer = "") -> Response:
    command: RerunCommand = parse_request(await request.body(), RerunCommand)
    lines = _stream(request, encode_message(command) + b"\n", transfer)
    return StreamingResponse(lines, media_type="application/x-ndjson")


async def _stream(request: Request, command: bytes, transfer: str) -> AsyncIterator[bytes]:
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(_MAX_QUEUED_LINES)
    process, messages = await _start_worker(request.app.state.service)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(command)
    outputs = [
        asyncio.create_task(_forward_output(process.stdout, 1, lines)),
        asyncio.create_task(_forward_output(process.stderr, 2, lines)),
    ]
    forwarder = asyncio.create_task(_forward_messages(messages, outputs, lines))
    try:
        while (line := await _next_line(lines)) is not None:
            yield line + b"\n"
        await process.wait()
    finally:
        for task in (*outputs, forwarder):
            task.cancel()
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        request.app.state.intake.end(transfer)


async def _start_worker(
    service: Service,
) -> tuple[asyncio.subprocess.Process, asyncio.StreamReader]:
    """The worker process, and the stream of its messages."""
    read_fd, write_fd = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *worker_command(write_fd),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_READ_BYTES,
            **worker_options(service, write_fd),
        )
    except BaseException:
        os.close(read_fd)
        raise
    finally:
        os.close(write_fd)
    messages = asyncio.StreamReader(limit=_MAX_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(messages), os.fdopen(read_fd, "rb")
    )
    return process, messages


async def _forward_output(
    stream: asyncio.StreamReader, descriptor: int, lines: asyncio.Queue[bytes | None]
) -> None:
    while data := await stream.read(_READ_BYTES):
        printed = {"printed": b64encode(data).decode(), "to": descriptor}
        await lines.put(json.dumps(printed).encode())


async def _forward_messages(
    messages: asyncio.StreamReader,
    outputs: list[asyncio.Task[None]],
    lines: asyncio.Queue[bytes | None],
) -> None:
    """Forward the messages; hold back the last one, the answer, until all output is forwarded."""
    last: bytes | None = None
    try:
        while line := await messages.readline():
            if last is not None:
                await lines.put(last)
            last = line.rstrip(b"\n")
    except ValueError:
        error = ClewError(
            f"the answer is longer than {_MAX_LINE_BYTES} bytes",
            hint="run the command on the server",
        )
        last = json.dumps(error.as_json()).encode()
    await asyncio.gather(*outputs)
    await lines.put(last)
    if last is not None:
        await lines.put(None)


async def _next_line(lines: asyncio.Queue[bytes | None]) -> bytes | None:
    """The next line; a keepalive if it takes long; None at the end."""
    try:
        async with asyncio.timeout(_KEEPALIVE_SECONDS):
            return await lines.get()
    except TimeoutError:
        return b"{}"
