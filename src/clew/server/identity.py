"""Who may ask: one local user, who has the token.

It is sent as a bearer token, or once in the address of the first page, which answers with a
cookie. The cookie is made from the token but is not it: whatever else listens on this machine is
sent the cookie too, and must not learn the token from it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from clew.server.problems import answer

OPEN = frozenset({"/healthz", "/readyz", "/metrics"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_YEAR = 365 * 24 * 3600


class Identity:
    """Lets nobody pass who has no token, but to what is open."""

    def __init__(self, app: ASGIApp, *, token: str, project: str) -> None:
        self._app = app
        self._token = token.encode()
        self._cookie = f"clew-{project[:8]}"
        self._value = hmac.new(self._token, b"cookie", hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        refusal = None if scope["path"] in OPEN else self._refusal(request)
        if scope["path"] == "/" and "token" in request.query_params:
            refusal = self._welcome(request)
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, request: HTTPConnection) -> Response | None:
        if self._has_token(request.headers.getlist("authorization")):
            return None
        if not self._has_cookie(request):
            return answer(
                request.url.path,
                401,
                "unauthorised",
                "who asks? no valid token was sent",
                hint="Authorization: Bearer TOKEN, with the token that clew server printed",
                headers={"WWW-Authenticate": "Bearer"},
            )
        # A WebSocket is asked for by a GET, by any page, and can do whatever it can.
        if request.scope.get("method") not in _SAFE and not _same_origin(request):
            return answer(
                request.url.path,
                403,
                "not-allowed",
                "another site's page cannot change anything here",
                hint="use the server's own pages, or a bearer token",
            )
        return None

    def _has_token(self, headers: Iterable[str]) -> bool:
        for header in headers:
            kind, _, value = header.partition(" ")
            if kind.lower() == "bearer" and self._is_token(value.strip()):
                return True
        return False

    def _has_cookie(self, request: HTTPConnection) -> bool:
        try:
            cookies = SimpleCookie("; ".join(request.headers.getlist("cookie")))
        except CookieError:
            return False
        found = cookies.get(self._cookie)
        return found is not None and hmac.compare_digest(
            found.value.encode("utf-8", "replace"), self._value.encode()
        )

    def _is_token(self, value: str) -> bool:
        return hmac.compare_digest(value.encode("utf-8", "replace"), self._token)

    def _welcome(self, request: HTTPConnection) -> Response:
        """The token in the address becomes a cookie, and leaves the address."""
        asked = parse_qs(request.url.query, keep_blank_values=True)
        if not any(map(self._is_token, asked.pop("token"))):
            return answer("/", 401, "unauthorised", "this token is not the server's")
        rest = urlencode(asked, doseq=True)
        found = RedirectResponse(f"/?{rest}" if rest else "/", status_code=303)
        found.headers["Referrer-Policy"] = "no-referrer"
        found.set_cookie(
            self._cookie,
            self._value,
            max_age=_YEAR,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme in ("https", "wss"),
        )
        return found


def _same_origin(request: HTTPConnection) -> bool:
    """Whether a page of this very server asks; a browser says so."""
    origin = request.headers.get("origin")
    if origin is not None:
        host = request.headers.get("host", "")
        return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())
    return request.headers.get("sec-fetch-site") in ("same-origin", "none")
