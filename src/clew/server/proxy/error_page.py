"""Errors of the proxy: a page for browsers, problem+json for programs."""

from html import escape
from http import HTTPStatus

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from clew.server.http.problems import problem_response

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Cache-Control": "no-store",
}
_RELOAD = {"Refresh": "3"}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 15vh auto; padding: 0 1rem;
  color: light-dark(#14181d, #e8ebee); background: light-dark(#fff, #15181c) }}
p {{ color: light-dark(#59616b, #a3abb5); white-space: pre-wrap; overflow-wrap: anywhere }}
</style></head><body>
<main><h1>{title}</h1><p>{hint}</p><p>{status} {phrase}</p></main>
</body></html>
"""


def error_page(
    scope: Scope, status: int, code: str, message: str, *, hint: str, reload: bool = False
) -> Response:
    """`reload`: the page is loaded again every few seconds, because the state may change."""
    request = HTTPConnection(scope)
    if scope["type"] != "http" or "text/html" not in request.headers.get("accept", ""):
        return problem_response(scope["path"], status, code, message, hint=hint)
    text = _PAGE.format(
        title=escape(message),
        hint=escape(hint),
        status=status,
        phrase=HTTPStatus(status).phrase,
    )
    return HTMLResponse(text, status, _HEADERS | (_RELOAD if reload else {}))
