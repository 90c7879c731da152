"""Every answer is told: one line in the log, one more in the numbers.

The token may stand in an address; it is told of neither there nor anywhere else.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.server.http.problems import problem_response
from clew.server.metrics import Metrics

_LOG = logging.getLogger("clew.server")
_SECRET = re.compile(r"((?:^|&)[^=&]*(?:token|password|secret)[^=&]*=)[^&]*", re.IGNORECASE)
_LONGEST = 500


class AccessLog:
    """Around everything else: it hears also of what was refused."""

    def __init__(self, app: ASGIApp, metrics: Metrics, routes: Mapping[object, str]) -> None:
        """`routes`: by what answers a request, how its address is written."""
        self._app = app
        self._metrics = metrics
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        heard = _Heard(scope)

        async def sending(message: Message) -> None:
            heard.sent(message)
            await send(message)

        self._metrics.under_way.inc()
        try:
            await self._app(scope, receive, sending)
        except Exception:
            _LOG.exception("%s %s failed", scope["method"], heard.path)
            heard.failed = True
            if heard.status is None:
                said = "the server failed; its log says how"
                await problem_response(scope["path"], 500, "failed", said)(scope, receive, sending)
            elif not heard.whole:
                raise  # the connection is closed: half an answer must not pass for a whole one
        finally:
            self._metrics.under_way.dec()
            heard.tell(self._metrics, self._routes.get(scope.get("endpoint"), "other"))


class _Heard:
    """What is known of one request."""

    def __init__(self, scope: Scope) -> None:
        self.path = str(scope["path"])[:_LONGEST]
        self.status: int | None = None
        self.whole = False
        self.failed = False
        self._scope = scope
        self._began = time.monotonic()
        self._answered: float | None = None
        self._stream = False
        self._bytes = 0

    def sent(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._answered = time.monotonic()
            self._stream = any(
                name.lower() == b"content-type" and value.startswith(b"text/event-stream")
                for name, value in message.get("headers", ())
            )
        elif message["type"] == "http.response.body":
            self._bytes += len(message.get("body", b""))
            self.whole = not message.get("more_body", False)

    def tell(self, metrics: Metrics, route: str) -> None:
        method = self._scope["method"] if route != "other" else "other"
        seconds = time.monotonic() - self._began
        until = self._answered if self._stream and self._answered else self._began + seconds
        metrics.requests.labels(method, route, str(self.status or "none")).inc()
        metrics.seconds.labels(method, route).observe(until - self._began)
        query = self._scope.get("query_string", b"").decode("latin-1")
        client = HTTPConnection(self._scope).client
        _LOG.info(
            "%s %s %s",
            self._scope["method"],
            self.path,
            self.status,
            extra={
                "event": "request",
                "method": self._scope["method"],
                "path": self.path,
                "query": _SECRET.sub(r"\1***", query)[:_LONGEST],
                "route": route,
                "status": self.status,
                "whole": self.whole,
                "seconds": round(seconds, 6),
                "bytes": self._bytes,
                "peer": client.host if client else None,
            },
        )
