"""Who may ask: one user, who has the token, or a browser in which that user has logged in.

A program sends the token with every request. A browser opens `/?token=` once and gets a session
cookie. A cookie is also sent when some other page makes the browser ask: one of another site, or,
since ports of a host are one site, a notebook's. So a request with a cookie is answered only if the
browser says that one of this origin's own pages made it, or that the user navigated here.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import parse_qs, urlencode

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from clew.errors import ClewError
from clew.server.http.problems import error_response, problem_response
from clew.server.http.sessions import API_AUDIENCE, SESSION_SECONDS, Session, Sessions

PUBLIC_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_SECURE = "__Host-"


class Authentication:
    """Answers nobody without the token or a session, except where everybody may ask.

    `cookie` is its name without `__Host-`; `audience` says for what a session must be valid.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        sessions: Sessions,
        cookie: str,
        audience: Callable[[Scope], str],
    ) -> None:
        self._app = app
        self._token = token
        self._sessions = sessions
        self._cookie = cookie
        self._audience = audience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] in PUBLIC_PATHS:
            await self._app(scope, receive, send)
            return
        try:
            refusal = await self._refusal(HTTPConnection(scope))
        except ClewError as error:
            refusal = error_response(scope["path"], error)
        await (refusal or self._app)(scope, receive, send)

    async def _refusal(self, request: HTTPConnection) -> Response | None:
        request.state.session = None
        if self._has_token(request.headers.getlist("authorization")):
            return None
        values = _cookies(request, self._cookie)
        session = await self._sessions.find(values, self._audience(request.scope))
        if session is None:
            return problem_response(
                request.url.path,
                401,
                "unauthorised",
                "no valid token was sent, and no session that still lasts",
                hint="Authorization: Bearer TOKEN, or open the address that clew server printed",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not _asked_by_own_page(request):
            return problem_response(
                request.url.path,
                403,
                "not-allowed",
                "a page of another origin cannot use this session",
                hint="use the server's own pages, or a bearer token",
            )
        request.state.session = session
        return None

    def _has_token(self, headers: Iterable[str]) -> bool:
        for header in headers:
            kind, _, value = header.partition(" ")
            if kind.lower() == "bearer" and is_token(value.strip(), self._token):
                return True
        return False


class TokenLogin:
    """Turns `/?token=` into a session, and takes the token out of the address."""

    def __init__(self, app: ASGIApp, *, token: str, sessions: Sessions, cookie: str) -> None:
        self._app = app
        self._token = token
        self._sessions = sessions
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/":
            request = HTTPConnection(scope)
            if "token" in request.query_params:
                await self._log_in(request)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _log_in(self, request: HTTPConnection) -> Response:
        asked = parse_qs(request.url.query, keep_blank_values=True)
        if not any(is_token(value, self._token) for value in asked.pop("token")):
            return problem_response("/", 401, "unauthorised", "this token is not the server's")
        rest = urlencode(asked, doseq=True)
        found = redirect(f"/?{rest}" if rest else "/")
        session = self._sessions.begin()
        value = self._sessions.value(session, API_AUDIENCE)
        set_cookie(found, request.scope, self._cookie, value, same_site="strict")
        return found


def is_token(value: str, token: str) -> bool:
    return hmac.compare_digest(value.encode("utf-8", "replace"), token.encode())


def redirect(address: str) -> Response:
    """To an address that nobody else may learn or keep."""
    headers = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
    return RedirectResponse(address, 303, headers)


def set_cookie(response: Response, scope: Scope, name: str, value: str, *, same_site: str) -> None:
    secure = is_secure(scope)
    written = [
        f"{_SECURE if secure else ''}{name}={value}",
        "Path=/",
        f"Max-Age={SESSION_SECONDS if value else 0}",
        "HttpOnly",
        f"SameSite={same_site}",
        *(["Secure"] if secure else []),
    ]
    response.headers.append("Set-Cookie", "; ".join(written))


def is_secure(scope: Scope) -> bool:
    """Whether the browser speaks HTTPS, to us or to a proxy in front of us."""
    return (
        scope["scheme"] in ("https", "wss") or (b"x-forwarded-proto", b"https") in scope["headers"]
    )


def session_of(scope: Scope) -> Session | None:
    """The session with which a request came; None: it came with the token."""
    found: Session | None = HTTPConnection(scope).state.session
    return found


def _cookies(request: HTTPConnection, name: str) -> Iterator[str]:
    """The values of all cookies of this name: a page on another port may have added one."""
    for header in request.headers.getlist("cookie"):
        for part in header.split(";"):
            found, _, value = part.strip().partition("=")
            if found in (name, _SECURE + name):
                yield value


def _asked_by_own_page(request: HTTPConnection) -> bool:
    """Whether the request comes from a page of this very origin, or from the user.

    Browsers state `Origin` with every WebSocket, every change and every answer that a page of
    another origin could read, and `Sec-Fetch-…` with everything, but only to HTTPS or this machine.
    A WebSocket is opened by a GET, but can do whatever its other end can: it has no method here.
    """
    headers, method = request.headers, request.scope.get("method")
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None:
        host = headers.get("host", "").lower()
        by_https = f"https://{host}"
        own = (by_https,) if is_secure(request.scope) else (by_https, f"http://{host}")
        return origin.lower() in own
    if site is None:
        return method in _SAFE
    if site in ("same-origin", "none"):
        return True
    opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    return method in ("GET", "HEAD") and opened == ("navigate", "document")
