"""Logs and counts every response: one log line each, and the request metrics.

A URL may contain the token or another secret; the log shows `***` instead.
"""

import logging
import re
import time
from collections.abc import Mapping

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.server.http.problems import problem_response
from clew.server.http.server_sent_events import is_event_stream
from clew.server.metrics import Metrics

_LOG = logging.getLogger("clew.server")
_SECRET = re.compile(r"((?:^|&)[^=&]*(?:token|password|secret)[^=&]*=)[^&]*", re.IGNORECASE)
_MAX_LOGGED = 500
"""Characters of a path or query in the log."""


class AccessLog:
    """The outermost middleware, so that it also sees requests that others refuse."""

    def __init__(self, app: ASGIApp, metrics: Metrics, routes: Mapping[object, str]) -> None:
        """`routes`: the path template of each endpoint function."""
        self._app = app
        self._metrics = metrics
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        entry = _LogEntry(scope)

        async def send_logged(message: Message) -> None:
            entry.observe(message)
            await send(message)

        self._metrics.in_progress.inc()
        try:
            await self._app(scope, receive, send_logged)
        except Exception:
            _LOG.exception("%s %s failed", scope["method"], entry.path)
            entry.failed = True
            if entry.status is None:
                message = "the server failed; see its log"
                response = problem_response(scope["path"], 500, "failed", message)
                await response(scope, receive, send_logged)
            elif not entry.complete:
                raise  # closes the connection, so that the client sees a truncated response
        finally:
            self._metrics.in_progress.dec()
            entry.write(self._metrics, self._routes.get(scope.get("endpoint"), "other"))


class _LogEntry:
    """The log entry of one request."""

    def __init__(self, scope: Scope) -> None:
        self.path = str(scope["path"])[:_MAX_LOGGED]
        self.status: int | None = None
        self.complete = False
        self.failed = False
        self._scope = scope
        self._started = time.monotonic()
        self._responded: float | None = None
        self._stream = False
        self._bytes = 0

    def observe(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._responded = time.monotonic()
            self._stream = is_event_stream(message)
        elif message["type"] == "http.response.body":
            self._bytes += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)

    def write(self, metrics: Metrics, route: str) -> None:
        method = self._scope["method"] if route != "other" else "other"
        seconds = time.monotonic() - self._started
        # An event stream lasts as long as its client wants: measure the time to its start.
        until = self._responded if self._stream and self._responded else self._started + seconds
        metrics.requests.labels(method, route, str(self.status or "none")).inc()
        metrics.seconds.labels(method, route).observe(until - self._started)
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
                "query": _SECRET.sub(r"\1***", query)[:_MAX_LOGGED],
                "route": route,
                "status": self.status,
                "whole": self.complete,
                "seconds": round(seconds, 6),
                "bytes": self._bytes,
                "peer": client.host if client else None,
            },
        )
