"""What one client may take of the server, so that there is enough for the others.

A body may be only so large and take only so long; requests under way are bounded, and so are
those that go on for long as streams, each by a number of their own. Who is refused is told why,
and when to come again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.server.http.identity import PUBLIC_PATHS
from clew.server.http.problems import KUBEFLOW_PREFIXES, problem_response

MB = 1 << 20
_BODIES = {
    "/api/v1/content": 128 * MB,
    **{
        f"{place}/pipelines/upload": 33 * MB for place in KUBEFLOW_PREFIXES
    },  # a file of 32, and its form
}
_RAW = ("/api/v1/events", "/api/v1/content/blake3:", *_BODIES)
"""Where bodies are no JSON documents, or are bounded by what reads them."""
_DOCUMENTS = ("/api/v1/content/missing", "/api/v1/content/records", "/api/v1/content/chunks")


@dataclass(frozen=True)
class Limits:
    """Sizes are bytes, times seconds."""

    head: int = 64 << 10
    """The first line of a request with its headers."""
    head_seconds: float = 20
    """Until they must be there, from the first byte of a request or of the connection."""
    idle_seconds: float = 65
    """Between two requests of one connection."""
    taken_seconds: float = 60
    """In which a reader must take something of what it asked for."""
    body: int = 32 * MB
    bodies: Mapping[str, int] = field(default_factory=lambda: dict(_BODIES))
    """Where larger bodies are taken, by the beginning of the path."""
    nested: int = 500_000
    """Objects and lists in a body of JSON: each takes many times its size in memory."""
    body_seconds: float = 30
    """Until a body must be there, and more by what comes:"""
    body_rate: int = 1024
    """Bytes in a second, at least."""
    requests: int = 256
    """Answers under way at once."""
    streams: int = 1024
    """Streams of events at once."""
    grace_seconds: int = 3
    """That answers under way have to end when the server is told to; then they are cut off."""


class _Refused(HTTPException):
    """The body was not taken; what the routes make of it is not what is answered."""


class RequestLimiter:
    """Holds the limits that can be held for each request."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._requests = 0
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PUBLIC_PATHS:
            await self._app(scope, receive, send)
        elif self._requests >= self._limits.requests or (self._full() and _asks_for_stream(scope)):
            await _busy(scope["path"])(scope, receive, send)
        else:
            await self._counted(scope, receive, send)

    def _full(self) -> bool:
        """Whether there can be no more streams: then one counts as a request, to its end."""
        return self._streams >= self._limits.streams

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(scope, receive, self._limits)
        begun = streams = False

        async def sending(message: Message) -> None:
            nonlocal begun, streams
            if body.refusal is not None and not begun:
                return  # that is the answer
            begins = message["type"] == "http.response.start"
            begun = begun or begins
            if begins and _is_stream(message) and not self._full():
                streams = True
                self._requests -= 1
                self._streams += 1
            await send(message)

        self._requests += 1
        try:
            await self._app(scope, body.receive, sending)
        except _Refused:
            if begun:
                raise  # half an answer: the connection is closed
        finally:
            if streams:
                self._streams -= 1
            else:
                self._requests -= 1
        if body.refusal is not None and not begun:
            await body.refusal(scope, receive, send)


class _Body:
    """What a request sends, as far as it may."""

    def __init__(self, scope: Scope, receive: Receive, limits: Limits) -> None:
        self.refusal: Response | None = None
        self._path: str = scope["path"]
        self._receive = receive
        self._most = next(
            (size for path, size in limits.bodies.items() if self._path.startswith(path)),
            limits.body,
        )
        self._declared = _length(scope)
        self._limits = limits
        self._began: float | None = None
        self._taken = 0
        self._is_document = not self._path.startswith(_RAW) or self._path in _DOCUMENTS
        self._nested = 0
        self._whole = False

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()
        if self._declared > self._most:
            raise self._refuse(_too_large, self._most)
        now = time.monotonic()
        self._began = self._began or now  # before, nobody waited for it
        may_take = self._limits.body_seconds + self._taken / self._limits.body_rate
        try:
            async with asyncio.timeout(max(self._began + may_take - now, 0)):
                message = await self._receive()
        except TimeoutError:
            raise self._refuse(_too_slow) from None
        body = message.get("body", b"")
        self._taken += len(body)
        if self._taken > self._most:
            raise self._refuse(_too_large, self._most)
        if self._is_document:
            self._nested += body.count(b"{") + body.count(b"[")
            if self._nested > self._limits.nested:
                raise self._refuse(_too_nested, self._limits.nested)
        self._whole = not message.get("more_body", False)
        return message

    def _refuse(self, refusal: Callable[..., Response], *about: int) -> _Refused:
        self.refusal = refusal(self._path, *about)
        return _Refused(self.refusal.status_code)


def _length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _asks_for_stream(scope: Scope) -> bool:
    return any(
        name == b"accept" and b"text/event-stream" in value for name, value in scope["headers"]
    )


def _is_stream(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in message.get("headers", ())
    )


def _too_large(path: str, most: int) -> Response:
    said = f"at most {most} bytes are taken here"
    return problem_response(
        path, 413, "too-large", said, hint="send less", headers={"Connection": "close"}
    )


def _too_nested(path: str, most: int) -> Response:
    said = f"at most {most} objects and lists are taken here"
    return problem_response(
        path, 413, "too-large", said, hint="send less", headers={"Connection": "close"}
    )


def _too_slow(path: str) -> Response:
    said = "the request did not come to its end in time"
    return problem_response(
        path, 408, "too-slow", said, hint="send faster", headers={"Connection": "close"}
    )


def _busy(path: str) -> Response:
    said, hint = "as many requests as can be are under way", "ask again in a second"
    return problem_response(path, 503, "busy", said, hint=hint, headers={"Retry-After": "1"})
