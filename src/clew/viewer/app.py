"""The viewer over HTTP: a page, and beside it the files, by their paths.

    GET files/PATH       a file's bytes, or the entries of a directory
    PUT files/PATH       a file, or a part of one
    POST files/PATH      ?make=folder, or ?rename=NEW PATH
    DELETE files/PATH    ?everything=true for a directory that is not empty

All routes are below a prefix, and the page uses relative addresses, so it works behind any proxy.
"""

import logging
import stat
from collections.abc import Collection
from importlib import resources
from urllib.parse import unquote_to_bytes

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from clew.errors import ClewError, UsageError
from clew.viewer import upload
from clew.viewer.directory_listing import MAX_ENTRIES, list_directory
from clew.viewer.download import FileResponse
from clew.viewer.origin_check import refuse_request
from clew.viewer.problems import error_response, problem_response
from clew.viewer.upload_body import receive_upload
from clew.viewer.volume import Volume

_LOG = logging.getLogger("clew.viewer")
_FILES = b"files/"
_PAGES = {
    b"": ("page.html", "text/html; charset=utf-8"),
    b"page.css": ("page.css", "text/css; charset=utf-8"),
    **{
        name.encode(): (name, "text/javascript; charset=utf-8")
        for name in ("page.js", "dom.js", "requests.js", "uploads.js")
    },
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; media-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'",
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


class Viewer:
    def __init__(
        self,
        volume: Volume,
        prefix: str,
        names: Collection[str] | None,
        access_digest: str | None = None,
    ) -> None:
        """`prefix` begins and ends with a slash; `names`, `access_digest`: see `origin_check`."""
        self._volume = volume
        self._prefix = prefix.encode()
        self._names = names
        self._access_digest = access_digest
        here = resources.files("clew.viewer")
        self._pages = {
            path: Response((here / name).read_bytes(), media_type=kind, headers=_HEADERS)
            for path, (name, kind) in _PAGES.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        try:
            response = await self._answer(request)
        except ClewError as error:
            response = error_response(error)
        except ClientDisconnect:
            return
        except Exception:
            _LOG.exception("%s failed", request.method)
            response = problem_response(500, "failed", "the viewer failed; its log says how")
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        path: bytes = request.scope["raw_path"]
        if path == b"/healthz":
            return Response("ok\n", media_type="text/plain")
        refused = refuse_request(request, self._names, self._access_digest)
        return refused or await self._route(request, path)

    async def _route(self, request: Request, path: bytes) -> ASGIApp:
        if path + b"/" == self._prefix:
            return RedirectResponse(self._prefix.decode(), 308)
        if not path.startswith(self._prefix):
            message = f"not found; the viewer is at {self._prefix.decode()}"
            return problem_response(404, "not-found", message)
        rest = path[len(self._prefix) :]
        if rest in self._pages and request.method in ("GET", "HEAD"):
            return self._pages[rest]
        if rest.startswith(_FILES):
            return await self._handle_file(request, unquote_to_bytes(rest[len(_FILES) :]))
        return problem_response(404, "not-found", "there is no such page")

    async def _handle_file(self, request: Request, path: bytes) -> ASGIApp:
        match request.method:
            case "GET" | "HEAD":
                return await run_in_threadpool(_get, self._volume, path, request)
            case "PUT":
                return await receive_upload(self._volume, path, request)
            case "POST":
                return await run_in_threadpool(_post, self._volume, path, request)
            case "DELETE":
                return await run_in_threadpool(_delete, self._volume, path, request)
        message, allowed = "this method is not supported", "GET, HEAD, PUT, POST, DELETE"
        return problem_response(405, "method-not-allowed", message, headers={"Allow": allowed})


def _get(volume: Volume, path: bytes, request: Request) -> ASGIApp:
    key = request.headers.get("upload-key")
    if key is not None:
        offset = upload.count_received(volume, path, key)
        return Response(headers={"Upload-Offset": str(offset), "Cache-Control": "no-store"})
    query = request.query_params
    if stat.S_ISDIR(volume.stat(path).st_mode):
        listing = list_directory(
            volume,
            path,
            sort=query.get("sort", "name"),
            descending=query.get("order") == "desc",
            offset=_number(query.get("offset"), 0),
            limit=_number(query.get("limit"), MAX_ENTRIES),
            containing=query.get("containing", ""),
        )
        return JSONResponse(listing.as_json(), headers={"Cache-Control": "no-store"})
    return FileResponse(
        volume,
        path,
        wanted=request.headers.get("range"),
        have=request.headers.get("if-none-match"),
        same=request.headers.get("if-range"),
        save="save" in query,
    )


def _post(volume: Volume, path: bytes, request: Request) -> Response:
    query = request.query_params
    if query.get("make") == "folder":
        volume.make_directory(path)
        return Response(status_code=201)
    if "rename" in query:
        volume.rename(path, _bytes(request, b"rename"))
        return Response(status_code=204)
    raise UsageError("?make=folder or ?rename=NEW PATH")


def _delete(volume: Volume, path: bytes, request: Request) -> Response:
    key = request.headers.get("upload-key")
    if key is not None:
        upload.discard(volume, path, key)
    else:
        volume.delete(path, recursive=request.query_params.get("everything") == "true")
    return Response(status_code=204)


def _bytes(request: Request, name: bytes) -> bytes:
    """The bytes of a query parameter: paths need not be UTF-8."""
    pairs = (pair.partition(b"=") for pair in request.scope["query_string"].split(b"&"))
    quoted = next(value for key, _, value in pairs if key == name)
    return unquote_to_bytes(quoted.replace(b"+", b" "))


def _number(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise UsageError(f"{text[:20]} is not a number")
    return int(text)
