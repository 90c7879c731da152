"""Send a file piece by piece, reading the next piece while one is sent.

The files of a volume are untrusted: none may run in a browser as a page of this server. So all text
is sent as plain text, and types that may contain scripts are only downloaded.
"""

import asyncio
import mimetypes
import os
from email.utils import formatdate
from urllib.parse import quote_from_bytes

from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from clew.viewer.byte_ranges import Unsatisfiable, etag_of, parse_range
from clew.viewer.volume import Volume

CHUNK_BYTES = 1 << 20
_SHOWN = ("image/", "audio/", "video/")
_TEXTS = frozenset(("application/json", "application/x-sh", "application/toml", "application/yaml"))
_SAVED = frozenset(("image/svg+xml",))
"""These may contain scripts. As an image in a page they are still shown."""
_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


class FileResponse:
    """The response to a GET or HEAD of a file."""

    def __init__(
        self,
        volume: Volume,
        path: bytes,
        *,
        wanted: str | None = None,
        have: str | None = None,
        same: str | None = None,
        save: bool = False,
    ) -> None:
        """`wanted`: the Range header; `same`: If-Range; `have`: If-None-Match; `save`: download
        it instead of showing it."""
        self._path = path
        self._descriptor = volume.fetch(path)
        found = os.fstat(self._descriptor)
        self.etag = etag_of(found)
        self._first, self._length = 0, found.st_size
        self._status = 200
        headers = {
            "ETag": self.etag,
            "Last-Modified": formatdate(found.st_mtime, usegmt=True),
            "Accept-Ranges": "bytes",
            "Cache-Control": "no-cache",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": _POLICY,
        }
        try:
            part = parse_range(wanted if same in (None, self.etag) else None, found.st_size)
        except Unsatisfiable:
            headers["Content-Range"] = f"bytes */{found.st_size}"
            self._status, self._length = 416, 0
        else:
            if part is not None:
                headers["Content-Range"] = part.header
                self._status, self._first, self._length = 206, part.first, part.length
        if have is not None and self.etag in have:
            self._status, self._length = 304, 0
        kind, inline = _kind(path)
        headers["Content-Type"] = kind
        headers["Content-Disposition"] = _disposition(path, inline=inline and not save)
        if self._status != 304:
            headers["Content-Length"] = str(self._length)
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self._status, "headers": self._headers}
        try:
            await send(start)
            if scope["method"] != "HEAD" and self._length:
                await self._pieces(receive, send)
            else:
                await send({"type": "http.response.body", "body": b""})
        finally:
            os.close(self._descriptor)

    async def _pieces(self, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_left(receive))
        place, end = self._first, self._first + self._length
        reading = asyncio.create_task(self._read(place, end))
        try:
            while place < end:
                piece = await reading
                place += len(piece)
                if not piece or gone.done():
                    return  # the file was truncated, or the client has gone: close the connection
                if place < end:
                    reading = asyncio.create_task(self._read(place, end))
                more = place < end
                await send({"type": "http.response.body", "body": piece, "more_body": more})
        finally:
            gone.cancel()
            await asyncio.wait([gone, reading])  # the file is closed after this, not under it

    async def _read(self, place: int, end: int) -> bytes:
        size = min(CHUNK_BYTES, end - place)
        return await run_in_threadpool(os.pread, self._descriptor, size, place)


async def _left(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _kind(path: bytes) -> tuple[str, bool]:
    """The type of a file by its name, and whether a browser may show it."""
    found, packed = mimetypes.guess_type(os.fsdecode(path))
    if packed or found is None:
        return "application/octet-stream", False
    if found.startswith("text/") or found in _TEXTS:
        return "text/plain; charset=utf-8", True
    return found, found.startswith(_SHOWN) and found not in _SAVED


def _disposition(path: bytes, *, inline: bool) -> str:
    name = quote_from_bytes(path.rsplit(b"/", 1)[-1], safe="")
    return f"{'inline' if inline else 'attachment'}; filename*=UTF-8''{name}"
