"""Authentication: by the project's own token, a personal access token, or a browser's session.

A program sends a token with every request. A browser opens `/?token=` once and gets a session
cookie. Browsers send cookies also when a page of another site makes the request, or a notebook,
since all ports of a host are one site. So a request with a cookie is accepted only if the browser
states that a page of this origin made it, or that the user navigated here.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import parse_qs, urlencode

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from clew.errors import ClewError
from clew.server.catalogue.access_tokens import ALL, OBSERVE
from clew.server.http.problems import error_response, problem_response
from clew.server.identity.access_tokens import AccessTokens
from clew.server.identity.login_page import is_own_path, login_page
from clew.server.identity.sessions import API_AUDIENCE, SESSION_SECONDS, Session, Sessions
from clew.viewer.origin_check import SAFE_METHODS, is_cross_origin

PUBLIC_PATHS = frozenset(
    {"/healthz", "/readyz", "/metrics"}
    | {
        f"/{app}/{path}"
        for app in ("jupyter", "tensorboards", "volumes")
        for path in ("healthz/liveness", "healthz/readiness", "metrics")
    }
)
"""Ours, and those of Kubeflow's apps."""
_SECURE_PREFIX = "__Host-"
_OBSERVATION_REQUESTS = frozenset(
    {
        ("POST", "/api/v1/observations"),
        ("POST", "/api/v1/content"),
        ("POST", "/api/v1/content/missing"),
    }
)
"""What a token with the scope `observe` permits: observations, and the contents that they name."""


class Authentication:
    """Refuses requests without the token or a session, except to the public paths.

    `cookie`: its name without `__Host-`; `audience`: what the session must be valid for;
    `log_in`: whether browsers without a session get a page that asks for the token.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        access_tokens: AccessTokens,
        sessions: Sessions,
        cookie: str,
        audience: Callable[[Scope], str],
        log_in: bool = False,
    ) -> None:
        self._app = app
        self._token = token
        self._access_tokens = access_tokens
        self._sessions = sessions
        self._cookie = cookie
        self._audience = audience
        self._log_in = log_in

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
        request.state.session = request.state.access_token = None
        bearers = list(_bearers(request.headers.getlist("authorization")))
        if any(is_token(value, self._token) for value in bearers):
            return None
        request.state.access_token = await self._access_tokens.find(bearers)
        if request.state.access_token is not None:
            return _out_of_scope(request)
        values = _cookies(request, self._cookie)
        session = await self._sessions.find(values, self._audience(request.scope))
        if session is None:
            if self._log_in and _wants_page(request):
                query = request.url.query
                return login_page(f"{request.url.path}?{query}" if query else request.url.path)
            return problem_response(
                request.url.path,
                401,
                "unauthorised",
                "the request has neither a valid token nor a valid session",
                hint="Authorization: Bearer TOKEN, or open the address that clew server printed",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not _is_same_origin(request):
            return problem_response(
                request.url.path,
                403,
                "not-allowed",
                "a page of another origin cannot use this session",
                hint="use the server's own pages, or a bearer token",
            )
        request.state.session = session
        return None


def _out_of_scope(request: HTTPConnection) -> Response | None:
    """Refuse what the scope of an access token does not permit. Unknown scopes permit nothing."""
    path, scope = request.scope["path"], request.state.access_token.scope
    if scope == ALL:
        return None
    if scope == OBSERVE and (request.scope.get("method"), path) in _OBSERVATION_REQUESTS:
        return None
    return problem_response(
        path,
        403,
        "not-allowed",
        f"the scope of this access token is {scope}, which does not permit this",
        hint="an agent sends observations to /api/v1/observations",
    )


def _bearers(headers: Iterable[str]) -> Iterator[str]:
    for header in headers:
        kind, _, value = header.partition(" ")
        if kind.lower() == "bearer":
            yield value.strip()


class TokenLogin:
    """Turns `/?token=` into a session, and redirects to the URL without the token, or to the path
    `to` of this server."""

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
        query = parse_qs(request.url.query, keep_blank_values=True)
        to = query.pop("to", ["/"])[0]
        if not any(is_token(value, self._token) for value in query.pop("token")):
            if _wants_page(request):
                return login_page(to, refused=True)
            return problem_response("/", 401, "unauthorised", "the token is not valid")
        rest = urlencode(query, doseq=True)
        response = redirect(f"/?{rest}" if rest else to if is_own_path(to) else "/")
        session = self._sessions.begin()
        value = self._sessions.value(session, API_AUDIENCE)
        set_cookie(response, request.scope, self._cookie, value, same_site="strict")
        return response


def _wants_page(request: HTTPConnection) -> bool:
    return request.scope.get("method") == "GET" and "text/html" in request.headers.get("accept", "")


def is_token(value: str, token: str) -> bool:
    return hmac.compare_digest(value.encode("utf-8", "replace"), token.encode())


def redirect(url: str) -> Response:
    """Redirect without leaking the URL to other sites or caches."""
    headers = {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
    return RedirectResponse(url, 303, headers)


def set_cookie(response: Response, scope: Scope, name: str, value: str, *, same_site: str) -> None:
    secure = is_secure(scope)
    attributes = [
        f"{_SECURE_PREFIX if secure else ''}{name}={value}",
        "Path=/",
        f"Max-Age={SESSION_SECONDS if value else 0}",
        "HttpOnly",
        f"SameSite={same_site}",
        *(["Secure"] if secure else []),
    ]
    response.headers.append("Set-Cookie", "; ".join(attributes))


def is_secure(scope: Scope) -> bool:
    """Whether the browser uses HTTPS, to this server or to a proxy in front of it."""
    return (
        scope["scheme"] in ("https", "wss") or (b"x-forwarded-proto", b"https") in scope["headers"]
    )


def session_of(scope: Scope) -> Session | None:
    """The session of a request; None if it was made with a token."""
    session: Session | None = HTTPConnection(scope).state.session
    return session


def uses_access_token(scope: Scope) -> bool:
    """Whether a request was made with a personal access token."""
    return HTTPConnection(scope).state.access_token is not None


def _cookies(request: HTTPConnection, name: str) -> Iterator[str]:
    """The values of all cookies of this name: a page on another port may have set one too."""
    for header in request.headers.getlist("cookie"):
        for part in header.split(";"):
            key, _, value = part.strip().partition("=")
            if key in (name, _SECURE_PREFIX + name):
                yield value


def _is_same_origin(request: HTTPConnection) -> bool:
    """Whether the request comes from a page of this very origin, or from the user.

    A WebSocket is opened by a GET but can change things, so its scope has no method and counts as
    unsafe.
    """
    headers, method = request.headers, request.scope.get("method")
    cross_origin = is_cross_origin(headers, https_only=is_secure(request.scope))
    if cross_origin is None:
        return method in SAFE_METHODS
    if not cross_origin:
        return True
    opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    by_user = method in ("GET", "HEAD") and opened == ("navigate", "document")
    return by_user and "origin" not in headers
