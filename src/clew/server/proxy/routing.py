"""Route requests to targets, and respond with an error if a target cannot."""

import logging
from collections.abc import Container, Mapping

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from clew.errors import ClewError
from clew.server.http.problems import problem_response
from clew.server.proxy import headers, targets
from clew.server.proxy.connection_pool import Pool
from clew.server.proxy.error_page import error_page
from clew.server.proxy.http_client import Unreachable, UpstreamError
from clew.server.proxy.http_forwarding import (
    ClientDisconnected,
    ClientTimeout,
    ResponseInterrupted,
    UpstreamTimeout,
    build_request,
    forward,
)
from clew.server.proxy.targets import PREFIXES, Resolver, Target, TargetFile, TargetKey
from clew.server.proxy.usage import UsageRecorder
from clew.server.proxy.websocket import HandshakeRejected, forward_websocket

_LOG = logging.getLogger("clew.server.proxy")
_MAX_CONCURRENT = 1024
"""Concurrent requests and WebSockets."""
ROUTE_NAMES: dict[object, str] = {
    kind: f"/{kind}/{{namespace}}/{{name}}/" for kind in PREFIXES.values()
}
"""The route labels of the metrics."""

_NOUNS = {"notebook": "notebook", "tensorboard": "TensorBoard", "pvcviewer": "volume viewer"}


class PortRouter:
    """Routes requests by the port they arrived on; other ports go to `rest`."""

    def __init__(self, ports: Mapping[int, ASGIApp], rest: ASGIApp) -> None:
        self._ports = ports
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        port = 0 if scope["type"] == "lifespan" else scope["server"][1]
        await self._ports.get(port, self._rest)(scope, receive, send)


class TargetRouter:
    """Routes requests for targets to `proxy`, and all others to `rest`."""

    def __init__(self, proxy: ASGIApp, rest: ASGIApp, own_prefixes: Container[str] | None) -> None:
        """`own_prefixes`: see `targets.match_path`."""
        self._proxy = proxy
        self._rest = rest
        self._own_prefixes = own_prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = b"" if scope["type"] == "lifespan" else scope["raw_path"]
        app = self._proxy if targets.match_path(path, self._own_prefixes) else self._rest
        await app(scope, receive, send)


class Proxy:
    """Forwards requests to targets. `Authentication` must come before it."""

    def __init__(self, resolver: Resolver | None, records: UsageRecorder, token: str) -> None:
        self._resolver = resolver
        self._records = records
        self._token = token
        self._pool = Pool()
        self._active = 0

    @property
    def custom_prefixes(self) -> bool:
        """Whether a user may choose the first segment of a path."""
        return self._resolver is not None and self._resolver.custom_prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = targets.match_path(scope["raw_path"], own_prefixes=())
        assert found is not None
        key, prefix = found
        scope["endpoint"] = key.kind
        if self._active >= _MAX_CONCURRENT:
            message, hint = "too many requests are being served", "try again in a second"
            await error_page(scope, 503, "busy", message, hint=hint)(scope, receive, send)
            return
        self._active += 1
        try:
            response = await self._respond(scope, receive, send, key, prefix)
        finally:
            self._active -= 1
        if response is not None:
            await response(scope, receive, send)

    async def _respond(
        self, scope: Scope, receive: Receive, send: Send, key: TargetKey, prefix: bytes
    ) -> Response | None:
        """Forward the request; returns the response if the target cannot give one."""
        try:
            target = None if self._resolver is None else await self._resolver.find(key)
        except ClewError as error:
            return error_page(scope, 502, error.code, error.message, hint=error.hint)
        if target is None or not targets.serves_prefix(prefix, target):
            return await self._missing_response(scope, key)
        if scope["raw_path"] == prefix:
            query = scope["query_string"].decode("latin-1")
            address = f"{prefix.decode()}/" + (f"?{query}" if query else "")
            return RedirectResponse(address, 308)  # its pages' links are relative to the slash
        try:
            await self._forward(scope, receive, send, key, prefix, target)
        except ClientDisconnected:
            pass
        except ResponseInterrupted as error:
            _LOG.warning("%s: cut off: %s", key, error)
        except Exception as error:
            if isinstance(error, Unreachable) and (found := await self._not_ready(scope, key)):
                return found
            return _error_response(scope, key, error)
        return None

    async def _missing_response(self, scope: Scope, key: TargetKey) -> Response:
        if found := await self._not_ready(scope, key):
            return found
        hint = (self._resolver or TargetFile).hint
        return error_page(scope, 404, "not-found", f"there is no {key}", hint=hint)

    async def _not_ready(self, scope: Scope, key: TargetKey) -> Response | None:
        """The reason why a target does not respond, if it is known."""
        why = None if self._resolver is None else await self._resolver.explain(key)
        if why is None:
            return None
        message = f"{_describe(key)} is not ready"
        return error_page(scope, 503, "not-ready", message, hint=why, reload=True)

    async def _forward(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        key: TargetKey,
        prefix: bytes,
        target: Target,
    ) -> None:
        usage = self._records.of(key)
        usage.begin(socket=scope["type"] == "websocket")
        address = targets.upstream_path(scope["raw_path"], prefix, target.rewrite)
        if query := headers.remove_token(scope["query_string"], self._token.encode()):
            address += b"?" + query
        given = headers.request_headers(
            scope,
            token=self._token,
            prefix=prefix,
            rewritten=target.rewrite is not None,
            more=target.headers,
        )
        if scope["type"] == "websocket":
            await forward_websocket(
                scope, receive, send, target=target, address=address, given=given, usage=usage
            )
        else:
            request = build_request(scope, address, given)
            pool = self._pool
            await forward(receive, send, pool=pool, target=target, request=request, usage=usage)


def _describe(key: TargetKey) -> str:
    return f"The {_NOUNS[key.kind]} {key.name}"


def _error_response(scope: Scope, key: TargetKey, error: Exception) -> Response:
    again = "It may still be starting: try again in a moment. A browser tries again by itself."
    if isinstance(error, HandshakeRejected):
        found = Response(error.body, error.status)
        found.raw_headers += error.headers
        return found
    if isinstance(error, ClientTimeout):
        message = "the request body did not arrive in time"
        return problem_response(
            scope["path"], 408, "too-slow", message, headers={"Connection": "close"}
        )
    if isinstance(error, UpstreamTimeout) or (isinstance(error, Unreachable) and error.late):
        late = f"{_describe(key)} did not answer in time"
        return error_page(scope, 504, "late", late, hint=again, reload=True)
    if isinstance(error, Unreachable):
        lost = f"{_describe(key)} cannot be reached"
        return error_page(scope, 502, "unreachable", lost, hint=again, reload=True)
    if isinstance(error, UpstreamError):
        message = f"{_describe(key)} closed the connection before it responded"
        return error_page(scope, 502, "broken", message, hint=str(error))
    raise error
