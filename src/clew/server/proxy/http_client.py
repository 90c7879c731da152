"""An HTTP/1.1 client for the targets: one exchange at a time on each connection.

It uses asyncio protocols directly, for speed: all traffic of all notebooks passes here. A body of
known length is passed on as it was read, without parsing or copying; the rest is parsed by
httptools. When too much data is buffered, the connection is not read.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

import httptools

MAX_BUFFERED = 512 << 10
"""Bytes of a response that may wait for the client."""
_MAX_HEAD_BYTES = 256 << 10
_CONNECT_SECONDS = 10.0


class Unreachable(Exception):
    """The target refused the connection, or (`late`) did not respond in time."""

    def __init__(self, message: str, *, late: bool = False) -> None:
        super().__init__(message)
        self.late = late


class UpstreamError(Exception):
    """The exchange ended before it was complete."""


class Connection(asyncio.Protocol):
    """A connection to a target, owned by its opener until it is closed or given to the pool."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._writable = asyncio.Event()
        self._writable.set()
        self._response: _Response | None = None
        self._wake: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._paused = False
        self._request_sent = False
        self.closed = False
        self.used = False
        """Whether an exchange has been on it before."""

    def begin(self, head: bytes, *, more: bool, without_body: bool) -> None:
        """Send a request; `more`: a body follows; `without_body`: the response has none (HEAD)."""
        self._response = _Response(without_body)
        self._request_sent = not more
        self._transport.write(head)

    def write(self, data: bytes, *, more: bool) -> None:
        self._transport.write(data)
        self._request_sent = not more

    async def drain(self) -> None:
        """Wait until more can be sent."""
        if not self._writable.is_set():
            await self._writable.wait()
        if self.closed:
            raise self._closed_error()

    async def head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Wait for the status and the headers of the response."""
        response = self._current_response()
        while response.status is None:
            if self.closed:
                raise self._closed_error()
            await self._wait_for_data()
        return response.status, response.headers

    async def read(self) -> bytes:
        """Wait for the next part of the body; empty at the end."""
        response = self._current_response()
        while not response.pieces:
            if response.complete:
                return b""
            if self.closed:
                raise self._closed_error()
            await self._wait_for_data()
        data = response.pieces[0] if len(response.pieces) == 1 else b"".join(response.pieces)
        response.pieces.clear()
        response.buffered = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return data

    @property
    def untouched(self) -> bool:
        """Whether no byte of a response has arrived yet."""
        return self._response is not None and not self._response.started

    @property
    def reusable(self) -> bool:
        """Whether another exchange may follow. Not if the target still expects the rest of a body:
        it would take the next request for it."""
        response = self._response
        complete = (
            self._request_sent
            and response is not None
            and response.complete
            and response.keep_alive
        )
        return complete and not self.closed

    def end(self) -> None:
        """End the exchange; the connection can be used for another."""
        self._response = None
        self.used = True

    def abort(self, error: Exception | None = None) -> None:
        """End the response; a buffered reader gets the error."""
        self._error = self._error or error
        self.closed = True
        self._transport.abort()
        self._wake_reader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods alone
        plain = transport.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None or response.complete:
            self.abort(UpstreamError("it sent an unexpected response"))
            return
        try:
            response.feed(data)
        except (httptools.HttpParserError, _Malformed) as error:
            self.abort(UpstreamError(f"its response is not valid HTTP: {error}"))
            return
        if response.buffered > MAX_BUFFERED and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._response is not None and exc is None and self._error is None:
            self._response.connection_closed()
        if exc is not None:
            self._error = self._error or UpstreamError(f"the connection broke: {exc}")
        self._writable.set()
        self._wake_reader()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _current_response(self) -> _Response:
        assert self._response is not None
        return self._response

    async def _wait_for_data(self) -> None:
        self._wake = self._loop.create_future()
        await self._wake

    def _wake_reader(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _closed_error(self) -> Exception:
        return self._error or UpstreamError("it closed the connection within its response")


class _Malformed(Exception):
    pass


class _Response:
    """A response while it arrives. The parser calls the methods `on_…`."""

    def __init__(self, without_body: bool) -> None:
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []
        self.buffered = 0
        self.started = False
        self.complete = False
        self.keep_alive = True
        self._without_body = without_body
        self._parser: Any = httptools.HttpResponseParser(self)
        self._head = 0
        self._remaining: int | None = None
        self._until_close = False

    def feed(self, data: bytes) -> None:
        self.started = True
        if self.status is None:
            self._head += len(data)
        elif self._remaining is not None:
            self._add_body(data)
            return
        self._parser.feed_data(data)
        if self.status is None and self._head > _MAX_HEAD_BYTES:
            raise _Malformed("its headers are too long")

    def connection_closed(self) -> None:
        """The target closed the connection, which ends a response without a length."""
        if self._until_close:
            self.complete = True

    def _add_body(self, data: bytes) -> None:
        assert self._remaining is not None
        if len(data) > self._remaining:
            raise _Malformed("it sent more than it announced")
        self._remaining -= len(data)
        self.pieces.append(data)
        self.buffered += len(data)
        self.complete = self._remaining == 0

    def on_message_begin(self) -> None:
        if self.status is not None:
            raise _Malformed("it sent a second response")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            if status == 101:
                raise _Malformed("it switched protocols without a request")
            return
        self.keep_alive = self._parser.should_keep_alive()
        lengths = {value for name, value in self.headers if name == b"content-length"}
        codings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
        if len(lengths) + len(codings) > 1 or codings not in ([], [b"chunked"], [b"identity"]):
            raise _Malformed("its length is not clear")
        self.status = status
        if self._without_body or status in (204, 304):
            self.complete = True
        elif codings != [b"chunked"] and lengths:
            self._remaining = int(lengths.pop())
            self.complete = self._remaining == 0
        elif codings != [b"chunked"]:
            self._until_close = True
            self.keep_alive = False

    def on_body(self, body: bytes) -> None:
        if self._remaining is not None:
            self._add_body(body)
        elif not self.complete:
            self.pieces.append(body)
            self.buffered += len(body)
        else:
            raise _Malformed("it sent a body that is not allowed")

    def on_message_complete(self) -> None:
        if self.status is None:
            self.headers.clear()  # an interim response (1xx)
        else:
            self.complete = True


async def connect(host: str, port: int) -> Connection:
    """Open a connection; raises Unreachable."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, connection = await loop.create_connection(Connection, host, port)
    except TimeoutError:
        raise Unreachable(f"no response from {host}:{port}", late=True) from None
    except OSError as error:
        why = error.strerror or str(error)
        raise Unreachable(f"cannot connect to {host}:{port}: {why}") from None
    return connection
