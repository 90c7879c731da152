"""Serves the web app: its page at the addresses of all its views, and its built files.

`make web` builds the app into `clew/_web`. Every address of a view answers with the same page; the
app shows the view that the address names.
"""

import mimetypes
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import FileResponse, HTMLResponse, Response

import clew
from clew.errors import NotFound
from clew.server.kubeflow.csrf import set_csrf_cookie

DIRECTORY = Path(clew.__file__).parent / "_web"
_VIEWS = (
    *("runs", "compare", "pipelines", "experiments", "schedules", "lineage"),
    *("notebooks", "tensorboards", "volumes", "settings", "jupyter"),
)
"""The first segments of the addresses of views. `/jupyter/` is Kubeflow's address of notebooks."""
_APIS = ("api", "apis", "assets")
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # graphs and tables position their parts by styles
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "frame-src 'self'",  # previews of HTML, which have an origin of their own by a sandbox
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_PAGE_HEADERS = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
_FOREVER = "public, max-age=31536000, immutable"
_NOT_BUILT = (
    "<!doctype html><title>Clew</title><p>The web app is not built: run <code>make web</code>."
)


class _PagePath(Convertor[str]):
    """The rest of a view's address. Addresses under `api/` belong to Kubeflow's routes: what is
    not there does not exist."""

    regex = "(?!api(/|$)).*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("page", _PagePath())


def include(app: FastAPI) -> None:
    """Add the routes of the app. Call it last: more specific routes come first."""
    app.add_api_route("/assets/{name}", get_asset, include_in_schema=False)
    app.add_api_route("/", get_page, include_in_schema=False)
    for view in _VIEWS:
        for path in (f"/{view}", f"/{view}/{{rest:page}}"):
            app.add_api_route(path, get_page, include_in_schema=False)


def is_of_browser(request: Request) -> bool:
    """Whether a browser navigates to this address, and it is not that of an API."""
    if request.method != "GET" or "text/html" not in request.headers.get("accept", ""):
        return False
    return not any(segment in _APIS for segment in request.url.path.split("/"))


def get_page(request: Request) -> Response:
    return show_page(request, 200)


def show_page(request: Request, status: int) -> Response:
    """The app. For an address that it does not know, it says so."""
    page = DIRECTORY / "index.html"
    if not page.exists():
        return HTMLResponse(_NOT_BUILT, 503)
    response = HTMLResponse(page.read_text(), status, headers=_PAGE_HEADERS)
    set_csrf_cookie(request, response)
    return response


def get_asset(request: Request, name: str) -> Response:
    """A built file, compressed if the client can decompress it."""
    if name not in _asset_names():
        raise NotFound(f"the web app has no file {name}", hint="reload the page")
    # The build puts a digest of the content into all names but those of the files of `public`.
    headers = {"Cache-Control": _FOREVER if "-" in name else "no-cache", "Vary": "Accept-Encoding"}
    path = DIRECTORY / "assets" / name
    compressed = path.with_name(f"{name}.gz")
    if "gzip" in request.headers.get("accept-encoding", "") and compressed.exists():
        path = compressed
        headers["Content-Encoding"] = "gzip"
    return FileResponse(path, media_type=mimetypes.guess_type(name)[0], headers=headers)


def _asset_names() -> frozenset[str]:
    """The files that exist: nothing else can be asked for, whatever the name looks like."""
    assets = DIRECTORY / "assets"
    return _list_files(assets, assets.stat().st_mtime_ns) if assets.exists() else frozenset()


@lru_cache(maxsize=1)
def _list_files(directory: Path, _changed: int) -> frozenset[str]:
    """Listed again after a change: an update may replace the app while the server runs."""
    return frozenset(path.name for path in directory.glob("*") if path.is_file())
