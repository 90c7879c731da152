"""Forwards one HTTP request to its target, and streams the response back.

Both directions run at the same time: a target may answer before it has read the whole request. A
slow side slows down the other, so little is buffered here. When the client disconnects, the
connection to the target is closed, and the other way round, so that a client never takes a
truncated response for a complete one.
"""

import asyncio
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from clew.server.http.request_head_check import body_length
from clew.server.proxy import headers
from clew.server.proxy.connection_pool import Pool
from clew.server.proxy.headers import Headers
from clew.server.proxy.http_client import Connection, UpstreamError
from clew.server.proxy.targets import Target
from clew.server.proxy.usage import TargetUsage

_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_BODY_SECONDS = 60.0
"""Seconds within which a client must send more of its body."""


class UpstreamTimeout(Exception):
    """The target did not respond, or did not read the request, in time."""


class ClientDisconnected(Exception):
    """The client disconnected."""


class ClientTimeout(Exception):
    """The client stopped sending its body."""


class ResponseInterrupted(Exception):
    """The response had begun and cannot be completed."""


@dataclass(frozen=True)
class UpstreamRequest:
    """A request as it is sent to the target."""

    method: str
    head: bytes
    length: int | None
    """The length of the body; None: unknown before its end, so that it is sent in chunks."""

    @property
    def has_body(self) -> bool:
        return self.length != 0

    @property
    def repeatable(self) -> bool:
        return self.method in _SAFE and not self.has_body


def build_request(scope: Scope, address: bytes, given: Headers) -> UpstreamRequest:
    """The request for a target. The length of its body is stated once, as our own parser read it,
    so that the target cannot read another one."""
    method = str(scope["method"])
    length = body_length(scope["headers"])
    lines = [b"%s %s HTTP/1.1" % (method.encode(), address)]
    lines += [b"%s: %s" % pair for pair in given if pair[0] != b"content-length"]
    if length is None:
        lines.append(b"transfer-encoding: chunked")
    elif length or method not in _SAFE:
        lines.append(b"content-length: %d" % length)
    head = b"\r\n".join(lines) + b"\r\n\r\n"
    return UpstreamRequest(method, head, length)


async def forward(
    receive: Receive,
    send: Send,
    *,
    pool: Pool,
    target: Target,
    request: UpstreamRequest,
    usage: TargetUsage,
) -> None:
    """Forward a request and its response.

    Unreachable, UpstreamError, UpstreamTimeout, ClientTimeout: no response was started yet.
    ClientDisconnected, ResponseInterrupted: no response can be sent any more.
    """
    connection = await pool.acquire(target, new=not request.repeatable)
    used = connection.used
    try:
        await _exchange(connection, receive, send, target, request, usage)
    except UpstreamError:
        if not (used and connection.untouched):
            raise
        # The target closed the idle connection just when it was used again.
        connection = await pool.acquire(target, new=True)
        await _exchange(connection, receive, send, target, request, usage)
    finally:
        pool.release(target, connection, reuse=not request.has_body)


async def _exchange(
    connection: Connection,
    receive: Receive,
    send: Send,
    target: Target,
    request: UpstreamRequest,
    usage: TargetUsage,
) -> None:
    connection.begin(request.head, more=request.has_body, without_body=request.method == "HEAD")
    timeout = _ResponseTimeout(target.timeout)
    sending = asyncio.create_task(_send_request(connection, receive, request, timeout, usage))
    begun = False
    try:
        async with timeout.until():
            status, given = await connection.head()
        bodyless = status in (204, 304)
        begun = True
        head = headers.response_headers(given, bodyless=bodyless)
        await send({"type": "http.response.start", "status": status, "headers": head})
        while data := await connection.read():
            usage.add_response(len(data))
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except TimeoutError:
        raise UpstreamTimeout from None
    except (UpstreamError, UpstreamTimeout, ClientTimeout) as error:
        if begun:
            raise ResponseInterrupted(str(error)) from error
        raise
    finally:
        sending.cancel()
        await asyncio.wait([sending])


class _ResponseTimeout:
    """The time limit for the start of the response, counted from the end of the request."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._timeout: asyncio.Timeout | None = None
        self._request_sent = False

    def until(self) -> asyncio.Timeout:
        self._timeout = asyncio.timeout(self.seconds if self._request_sent else None)
        return self._timeout

    def start(self) -> None:
        self._request_sent = True
        if self._timeout is not None and not self._timeout.expired():
            loop = asyncio.get_running_loop()
            self._timeout.reschedule(loop.time() + self.seconds)


async def _send_request(
    connection: Connection,
    receive: Receive,
    request: UpstreamRequest,
    timeout: _ResponseTimeout,
    usage: TargetUsage,
) -> None:
    """Send the body of the request; then abort the exchange if the client disconnects."""
    try:
        if request.has_body:
            await _send_body(connection, receive, request, timeout.seconds, usage)
        timeout.start()
        while (await receive())["type"] != "http.disconnect":
            pass
        raise ClientDisconnected
    except (ClientDisconnected, UpstreamTimeout, ClientTimeout) as error:
        connection.abort(error)
    except UpstreamError:
        pass  # the reader of the response sees the error too, or has the whole response


async def _send_body(
    connection: Connection,
    receive: Receive,
    request: UpstreamRequest,
    seconds: float,
    usage: TargetUsage,
) -> None:
    more, sent = True, 0
    while more:
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise ClientTimeout from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        body, more = message.get("body", b""), message.get("more_body", False)
        usage.add_request(len(body))
        sent += len(body)
        if request.length is not None and (
            sent > request.length or (sent < request.length and not more)
        ):
            raise ClientTimeout  # a body of another length than announced must not be passed on
        if request.length is None:
            body = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            body += b"" if more else b"0\r\n\r\n"
        connection.write(body, more=more)
        try:
            async with asyncio.timeout(seconds):
                await connection.drain()
        except TimeoutError:
            raise UpstreamTimeout from None
