"""The separate origin of notebooks, TensorBoards and viewers.

Their pages run untrusted code. At the server's own origin that code could use the API as the user,
so it gets another origin: a second port, or host names made from a template, one for each target.
The server's own address redirects there, and passes the user's session along in a ticket.
"""

import hashlib
import re
from collections.abc import Container
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from clew.errors import ClewError, UsageError
from clew.server.http.problems import error_response, problem_response
from clew.server.http.request_head_check import parse_host as host_of
from clew.server.identity.authentication import is_secure, redirect, session_of, set_cookie
from clew.server.identity.sessions import Sessions, apps_audience
from clew.server.proxy import headers, targets
from clew.server.proxy.error_page import error_page
from clew.server.proxy.targets import TargetKey

LOGIN_PATH = "/.clew/login"
"""The path at which a ticket is redeemed; no target has such a path."""
_FIELD = re.compile(r"\{(kind|namespace|name|id)\}")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?")
_DEFAULT_PORT = re.compile(r"^(http:.*):80$|^(https:.*):443$")
_PORT = re.compile(r":\d+$")


@dataclass(frozen=True)
class AppOrigin:
    """The origin at which browsers find the targets."""

    port: int
    """The port on which this server serves them."""
    template: str | None = None
    """`https://{name}.{namespace}.apps.example.org`; None: as requested, on that port."""

    @property
    def shared(self) -> bool:
        """Whether all targets have the same origin."""
        return self.template is None or not _FIELD.search(self.template)

    def of(self, scope: Scope, key: TargetKey) -> str:
        """The origin of a target, for this request."""
        if self.template is None:
            scheme = "https" if is_secure(scope) else "http"
            return f"{scheme}://{_PORT.sub('', host_of(scope))}:{self.port}"
        fields = {"kind": key.kind, "namespace": key.namespace, "name": key.name}
        fields["id"] = hashlib.sha256(str(key).encode()).hexdigest()[:32]
        return _FIELD.sub(lambda found: fields[found[1]], self.template)


def check_template(text: str) -> str:
    """Check that the template gives an origin: a scheme, a host and perhaps a port. A default port
    is removed, as browsers do in `Host`."""
    text = _DEFAULT_PORT.sub(r"\1\2", text)
    example = _FIELD.sub("a", text)
    try:
        sound = _ORIGIN.fullmatch(example) and urlsplit(example).port != 0
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(
            f"{text} is not an origin",
            hint="--apps-origin 'https://{name}.{namespace}.apps.example.org'",
        )
    return text


class AppRedirect:
    """At the server's own origin: redirects browsers to the origin of a target."""

    def __init__(
        self, origin: AppOrigin, sessions: Sessions, token: str, own_prefixes: Container[str] | None
    ):
        self._origin = origin
        self._sessions = sessions
        self._token = token.encode()
        self._own_prefixes = own_prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = targets.match_path(scope["raw_path"], self._own_prefixes)
        assert found is not None
        origin = self._origin.of(scope, found[0])
        await self._respond(scope, origin)(scope, receive, send)

    def _respond(self, scope: Scope, origin: str) -> Response:
        if scope.get("method") not in ("GET", "HEAD"):
            message = f"it is served at {origin}"
            return problem_response(
                scope["path"], 421, "misdirected", message, hint="send the token there"
            )
        address = scope["raw_path"].decode("latin-1")
        if query := headers.remove_token(scope["query_string"], self._token):
            address += "?" + query.decode("latin-1")
        session = session_of(scope) or self._sessions.begin()
        ticket = self._sessions.ticket(session, urlsplit(origin).netloc)
        return redirect(f"{origin}{LOGIN_PATH}?token={ticket}&to={quote(address, safe='/')}")


class AppLogin:
    """At the targets' origin: redeems tickets, and passes only requests for targets."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        origin: AppOrigin,
        sessions: Sessions,
        cookie: str,
        own_prefixes: Container[str] | None,
    ) -> None:
        self._app = app
        self._origin = origin
        self._sessions = sessions
        self._cookie = cookie
        self._own_prefixes = own_prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if targets.match_path(scope["raw_path"], self._own_prefixes):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] == LOGIN_PATH and scope["method"] == "GET":
            try:
                found = await self._log_in(HTTPConnection(scope))
            except ClewError as error:
                found = error_response(scope["path"], error)
        else:
            hint = "the server's own pages are at its other address"
            found = error_page(scope, 404, "not-found", "there is nothing here", hint=hint)
        await found(scope, receive, send)

    async def _log_in(self, request: HTTPConnection) -> Response:
        host = host_of(request.scope)
        to = request.query_params.get("to", "")
        ticket = request.query_params.get("token", "")
        there = targets.match_path(to.encode("utf-8", "replace"), self._own_prefixes)
        session = await self._sessions.redeem(ticket, host) if there else None
        if session is None:
            hint = "open it by the server's own address"
            message = "this address was used before, or is too old"
            return error_page(request.scope, 401, "unauthorised", message, hint=hint)
        found = redirect(to)
        value = self._sessions.value(session, apps_audience(host))
        set_cookie(found, request.scope, self._cookie, value, same_site="lax")
        return found


class AppHostCheck:
    """After authentication: with a session, each target is served only at its own origin.
    Otherwise a page of one target could read those of another."""

    def __init__(
        self, app: ASGIApp, origin: AppOrigin, own_prefixes: Container[str] | None
    ) -> None:
        self._app = app
        self._origin = origin
        self._own_prefixes = own_prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = targets.match_path(scope["raw_path"], self._own_prefixes)
        assert found is not None
        origin = self._origin.of(scope, found[0])
        elsewhere = host_of(scope) != urlsplit(origin).netloc
        if session_of(scope) and not self._origin.shared and elsewhere:
            message = f"it is served at {origin}"
            refusal = problem_response(scope["path"], 421, "misdirected", message)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)
