"""Limits on what clients may use of the server, so that none can exhaust it.

The size and duration of request bodies is limited, and so is the number of concurrent requests and,
separately, of event streams. A refused client learns why, and when to try again.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.server.http.problems import KUBEFLOW_PREFIXES, problem_response
from clew.server.http.request_head_check import body_length
from clew.server.http.server_sent_events import is_event_stream
from clew.server.identity.authentication import PUBLIC_PATHS

MB = 1 << 20
_LARGE_BODIES = {
    "/api/v1/content": 128 * MB,
    **{
        f"{prefix}/pipelines/upload": 33 * MB for prefix in KUBEFLOW_PREFIXES
    },  # a file of 32 MB, and its form
}
_RAW_PATHS = ("/api/v1/events", "/api/v1/observations", "/api/v1/content/blake3:", *_LARGE_BODIES)
"""Paths whose bodies are not JSON documents, or whose routes limit them."""
_JSON_PATHS = ("/api/v1/content/missing", "/api/v1/content/records", "/api/v1/content/chunks")


@dataclass(frozen=True)
class Limits:
    """Sizes are in bytes."""

    head_bytes: int = 64 << 10
    """The request line and the headers."""
    head_seconds: float = 20
    """For receiving the head, from the first byte of the request or from connecting."""
    idle_seconds: float = 65
    """Between two requests of one connection."""
    write_seconds: float = 60
    """For the client to read something of a response that it has fallen behind with."""
    body_bytes: int = 32 * MB
    path_body_bytes: Mapping[str, int] = field(default_factory=lambda: dict(_LARGE_BODIES))
    """Exceptions to `body_bytes`, by path prefix."""
    json_containers: int = 500_000
    """Objects and lists in a JSON body: in memory each takes many times its size."""
    body_seconds: float = 30
    """For receiving a body, plus the time that its bytes take at `body_rate`."""
    body_rate: int = 1024
    """The lowest accepted rate, in bytes per second."""
    requests: int = 256
    """Concurrent requests."""
    streams: int = 1024
    """Concurrent event streams."""
    grace_seconds: int = 3
    """For responses to finish at shutdown; then their connections are closed."""


class _Refused(HTTPException):
    """The body was refused: `_Body.refusal` is the response, whatever the route makes of this."""


class RequestLimiter:
    """Enforces the limits on bodies, requests and streams."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._requests = 0
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PUBLIC_PATHS:
            await self._app(scope, receive, send)
        elif self._requests >= self._limits.requests or (
            self._streams_full() and _asks_for_stream(scope)
        ):
            await _busy(scope["path"])(scope, receive, send)
        else:
            await self._forward(scope, receive, send)

    def _streams_full(self) -> bool:
        """Whether there are too many streams: then a further one counts as a request."""
        return self._streams >= self._limits.streams

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(scope, receive, self._limits)
        started = is_stream = False

        async def send_counted(message: Message) -> None:
            nonlocal started, is_stream
            if body.refusal is not None and not started:
                return  # the refusal is sent instead
            is_start = message["type"] == "http.response.start"
            started = started or is_start
            if is_start and is_event_stream(message) and not self._streams_full():
                is_stream = True
                self._requests -= 1
                self._streams += 1
            await send(message)

        self._requests += 1
        try:
            await self._app(scope, body.receive, send_counted)
        except _Refused:
            if started:
                raise  # closes the connection, so that the client sees a truncated response
        finally:
            if is_stream:
                self._streams -= 1
            else:
                self._requests -= 1
        if body.refusal is not None and not started:
            await body.refusal(scope, receive, send)


class _Body:
    """The body of a request, received within the limits."""

    def __init__(self, scope: Scope, receive: Receive, limits: Limits) -> None:
        self.refusal: Response | None = None
        self._path: str = scope["path"]
        self._receive = receive
        self._max_bytes = next(
            (size for path, size in limits.path_body_bytes.items() if self._path.startswith(path)),
            limits.body_bytes,
        )
        self._declared = body_length(scope["headers"]) or 0
        self._limits = limits
        self._started: float | None = None
        self._received = 0
        self._is_document = not self._path.startswith(_RAW_PATHS) or self._path in _JSON_PATHS
        self._containers = 0
        self._complete = False

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        if self._declared > self._max_bytes:
            raise self._refuse_size(f"is larger than {self._max_bytes} bytes")
        now = time.monotonic()
        self._started = self._started or now  # the time starts when the route first waits
        allowed = self._limits.body_seconds + self._received / self._limits.body_rate
        try:
            async with asyncio.timeout(max(self._started + allowed - now, 0)):
                message = await self._receive()
        except TimeoutError:
            why = "the request body was not received in time"
            raise self._refuse(408, "too-slow", why, hint="send faster") from None
        body = message.get("body", b"")
        self._received += len(body)
        if self._received > self._max_bytes:
            raise self._refuse_size(f"is larger than {self._max_bytes} bytes")
        if self._is_document:
            self._containers += body.count(b"{") + body.count(b"[")
            if self._containers > (limit := self._limits.json_containers):
                raise self._refuse_size(f"contains more than {limit} objects and lists")
        self._complete = not message.get("more_body", False)
        return message

    def _refuse_size(self, why: str) -> _Refused:
        return self._refuse(413, "too-large", f"the request body {why}", hint="send less")

    def _refuse(self, status: int, code: str, message: str, *, hint: str) -> _Refused:
        headers = {"Connection": "close"}
        self.refusal = problem_response(
            self._path, status, code, message, hint=hint, headers=headers
        )
        return _Refused(status)


def _asks_for_stream(scope: Scope) -> bool:
    return any(
        name == b"accept" and b"text/event-stream" in value for name, value in scope["headers"]
    )


def _busy(path: str) -> Response:
    message, hint = "the server is handling too many requests", "try again in a second"
    return problem_response(path, 503, "busy", message, hint=hint, headers={"Retry-After": "1"})
