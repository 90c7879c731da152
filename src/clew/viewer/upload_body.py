"""Receive the body of a PUT, writing one piece while the next arrives."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

from fastapi.concurrency import contextmanager_in_threadpool
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from clew.errors import UsageError
from clew.viewer import byte_ranges
from clew.viewer.byte_ranges import ByteRange
from clew.viewer.problems import problem_response
from clew.viewer.upload import Upload, open_upload
from clew.viewer.volume import Volume

_PIECE_BYTES = 1 << 20


async def receive_upload(volume: Volume, path: bytes, request: Request) -> Response:
    """Write a file or a part of one. A part must begin where the previous one ended; otherwise 409
    with `Upload-Offset` says where. If everything was received but the file could not be put in its
    place, because another was there or the viewer ended, an empty last part does it."""
    header = request.headers.get("content-range")
    part = None if header is None else byte_ranges.parse_content_range(header)
    key = secrets.token_hex(16)
    if part is not None:
        key = request.headers.get("upload-key", f"{part.total} bytes")
        if request.headers.get("content-length", str(part.length)) != str(part.length):
            raise UsageError("Content-Range and Content-Length do not agree")
    async with contextmanager_in_threadpool(open_upload(volume, path, key)) as found:
        if part is None:
            return await _whole(found, request)
        return await _part(found, request, part)


async def _whole(found: Upload, request: Request) -> Response:
    try:
        await run_in_threadpool(_check, found, request)
        await _write(found, request)
        return await run_in_threadpool(_finish, found, request)
    except BaseException:
        found.drop()
        raise


async def _part(found: Upload, request: Request, part: ByteRange) -> Response:
    if found.size != part.first:
        headers = {"Upload-Offset": str(found.size)}
        message = f"{found.size} bytes were received; the part begins at {part.first}"
        end = f"Content-Range: bytes */{part.total} puts it in its place, and sends nothing"
        hint = end if found.size == part.total else "go on from there"
        return problem_response(409, "busy", message, hint=hint, headers=headers)
    await run_in_threadpool(_check, found, request)
    await _write(found, request, most=part.length)
    if found.size < part.total:
        return JSONResponse({"received": found.size}, 202, {"Upload-Offset": str(found.size)})
    return await run_in_threadpool(_finish, found, request)


async def _write(found: Upload, request: Request, *, most: int | None = None) -> None:
    """Write what arrives, also if the client disconnects before the end."""
    first = found.size
    writing: asyncio.Task[None] | None = None
    try:
        async for piece in _pieces(request):
            if writing is not None:
                await writing
            if most is not None and found.size - first + len(piece) > most:
                raise UsageError("more was sent than Content-Range says")
            writing = asyncio.create_task(run_in_threadpool(found.write, piece))
    finally:
        if writing is not None:
            await writing


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    """The body in large pieces, since each is a call to the disk."""
    waiting = bytearray()
    try:
        async for data in request.stream():
            waiting += data
            if len(waiting) >= _PIECE_BYTES:
                yield bytes(waiting)
                waiting.clear()
    except ClientDisconnect:
        if waiting:
            yield bytes(waiting)
        raise
    if waiting:
        yield bytes(waiting)


def _check(found: Upload, request: Request) -> None:
    """Check before the upload whether the file could be written, not after gigabytes."""
    found.check(**_conditions(request))


def _finish(found: Upload, request: Request) -> Response:
    etag, new = found.finish(**_conditions(request))
    return Response(status_code=201 if new else 204, headers={"ETag": etag})


def _conditions(request: Request) -> dict[str, Any]:
    headers = request.headers
    return {"expected": headers.get("if-match"), "new": headers.get("if-none-match") == "*"}
