"""The body of a PUT, on its way to the disk: the next piece comes while one is written."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import TypedDict

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

_PIECE = 1 << 20


class _Conditions(TypedDict):
    expected: str | None
    new: bool


async def receive_upload(volume: Volume, path: bytes, request: Request) -> Response:
    """Write what is sent. A part must go on where the one before ended; who does not know where
    that was is told (409, `Upload-Offset`). All may have come and not be in its place yet, because
    something else was there, or the viewer was ended: then the last part is an empty one."""
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
        await run_in_threadpool(_may, found, request)
        await _write(found, request)
        return await run_in_threadpool(_finished, found, request)
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
    await run_in_threadpool(_may, found, request)
    await _write(found, request, most=part.length)
    if found.size < part.total:
        return JSONResponse({"received": found.size}, 202, {"Upload-Offset": str(found.size)})
    return await run_in_threadpool(_finished, found, request)


async def _write(found: Upload, request: Request, *, most: int | None = None) -> None:
    """What came is written, also when no more of it will come."""
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
    """Large ones: each is a call to the disk."""
    waiting: list[bytes] = []
    size = 0
    try:
        async for data in request.stream():
            waiting.append(data)
            size += len(data)
            if size >= _PIECE:
                yield b"".join(waiting)
                waiting, size = [], 0
    except ClientDisconnect:
        if size:
            yield b"".join(waiting)
        raise
    if size:
        yield b"".join(waiting)


def _may(found: Upload, request: Request) -> None:
    """Check before the upload whether the file could be written, not after gigabytes."""
    found.check(**_conditions(request))


def _finished(found: Upload, request: Request) -> Response:
    etag, new = found.finish(**_conditions(request))
    return Response(status_code=201 if new else 204, headers={"ETag": etag})


def _conditions(request: Request) -> _Conditions:
    return {
        "expected": request.headers.get("if-match"),
        "new": request.headers.get("if-none-match") == "*",
    }
