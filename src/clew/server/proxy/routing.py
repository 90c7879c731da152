"""Routes requests to targets, and answers with an error if a target cannot."""

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


class PortRouter:
    """Requests go by the port on which they came; those on no port named here go to `rest`."""

    def __init__(self, ports: Mapping[int, ASGIApp], rest: ASGIApp) -> None:
        self._ports = ports
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        port = 0 if scope["type"] == "lifespan" else scope["server"][1]
        await self._ports.get(port, self._rest)(scope, receive, send)


class TargetRouter:
    """Requests for targets go one way, all others the other."""

    def __init__(self, proxy: ASGIApp, rest: ASGIApp, ours: Container[str] | None) -> None:
        """`ours`: see `targets.match_path`."""
        self._proxy = proxy
        self._rest = rest
        self._ours = ours

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        away = scope["type"] != "lifespan" and targets.match_path(scope["raw_path"], self._ours)
        await (self._proxy if away else self._rest)(scope, receive, send)


class Proxy:
    """Forwards requests to targets. `Authentication` must come before it."""

    def __init__(self, resolver: Resolver | None, records: UsageRecorder, token: str) -> None:
        self._resolver = resolver
        self._records = records
        self._token = token
        self._pool = Pool()
        self._under_way = 0

    @property
    def chosen(self) -> bool:
        """Whether the first part of an address may be one that a user chose."""
        return self._resolver is not None and self._resolver.chosen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = targets.match_path(scope["raw_path"], ours=())
        assert found is not None
        key, prefix = found
        scope["endpoint"] = key.kind
        if self._under_way >= _MAX_CONCURRENT:
            message, hint = "too many requests are being served", "try again in a second"
            await error_page(scope, 503, "busy", message, hint=hint)(scope, receive, send)
            return
        self._under_way += 1
        try:
            refusal = await self._answer(scope, receive, send, key, prefix)
        finally:
            self._under_way -= 1
        if refusal is not None:
            await refusal(scope, receive, send)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, key: TargetKey, prefix: bytes
    ) -> Response | None:
        """What is answered in the target's place, if it cannot."""
        try:
            target = None if self._resolver is None else await self._resolver.find(key)
        except ClewError as error:
            return error_page(scope, 502, error.code, error.message, hint=error.hint)
        if target is None or not targets.serves_prefix(prefix, target):
            hint = (self._resolver or TargetFile).hint
            return error_page(scope, 404, "not-found", f"there is no {key}", hint=hint)
        if scope["raw_path"] == prefix:
            query = scope["query_string"].decode("latin-1")
            address = f"{prefix.decode()}/" + (f"?{query}" if query else "")
            return RedirectResponse(address, 308)  # its pages' links are relative to the slash
        try:
            await self._pass(scope, receive, send, key, prefix, target)
        except ClientDisconnected:
            pass
        except ResponseInterrupted as error:
            _LOG.warning("%s: cut off: %s", key, error)
        except Exception as error:
            return _refusal(scope, key, error)
        return None

    async def _pass(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        key: TargetKey,
        prefix: bytes,
        target: Target,
    ) -> None:
        seen = self._records.of(key)
        seen.began(socket=scope["type"] == "websocket")
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
                scope, receive, send, target=target, address=address, given=given, seen=seen
            )
        else:
            request = build_request(scope, address, given)
            pool = self._pool
            await forward(receive, send, pool=pool, target=target, request=request, seen=seen)


def _refusal(scope: Scope, key: TargetKey, error: Exception) -> Response:
    again = "it may still be starting: try again in a moment"
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
        return error_page(scope, 504, "late", f"{key} did not answer in time", hint=again)
    if isinstance(error, Unreachable):
        return error_page(scope, 502, "unreachable", f"{key} cannot be reached", hint=again)
    if isinstance(error, UpstreamError):
        message = f"{key} closed the connection before it responded"
        return error_page(scope, 502, "broken", message, hint=str(error))
    raise error
