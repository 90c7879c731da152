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
    """The target refused the connection, or (`late`) did not answer in time."""

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
        self._answer: _Answer | None = None
        self._wake: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._paused = False
        self._said = False
        self.closed = False
        self.used = False
        """Whether an exchange has been on it before."""

    # what is done with it

    def begin(self, head: bytes, *, more: bool, without_body: bool) -> None:
        """Ask; `more`: with a body; `without_body`: of a HEAD nothing but the head is answered."""
        self._answer = _Answer(without_body)
        self._said = not more
        self._transport.write(head)

    def write(self, data: bytes, *, more: bool) -> None:
        self._transport.write(data)
        self._said = not more

    async def drain(self) -> None:
        """Until more can be sent."""
        if not self._writable.is_set():
            await self._writable.wait()
        if self.closed:
            raise self._why()

    async def head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """The status of the answer, and its headers."""
        answer = self._asked()
        while answer.status is None:
            if self.closed:
                raise self._why()
            await self._more()
        return answer.status, answer.headers

    async def read(self) -> bytes:
        """What came of the body since; nothing: it is whole."""
        answer = self._asked()
        while not answer.pieces:
            if answer.whole:
                return b""
            if self.closed:
                raise self._why()
            await self._more()
        data = answer.pieces[0] if len(answer.pieces) == 1 else b"".join(answer.pieces)
        answer.pieces.clear()
        answer.waiting = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return data

    @property
    def untouched(self) -> bool:
        """Whether nothing of an answer has come yet."""
        return self._answer is not None and not self._answer.begun

    @property
    def reusable(self) -> bool:
        """Whether another exchange may follow on it: not where the target still waits for the rest
        of a body, which the next request would be taken for."""
        answer = self._answer
        whole = self._said and answer is not None and answer.whole and answer.keep
        return whole and not self.closed

    def end(self) -> None:
        """The exchange is over, and the connection waits for another."""
        self._answer = None
        self.used = True

    def abort(self, error: Exception | None = None) -> None:
        """End the response; a waiting reader gets the error."""
        self._error = self._error or error
        self.closed = True
        self._transport.abort()
        self._tell()

    # what happens to it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods alone
        plain = transport.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None or answer.whole:
            self.abort(UpstreamError("it sent an unexpected response"))
            return
        try:
            answer.feed(data)
        except (httptools.HttpParserError, _Malformed) as error:
            self.abort(UpstreamError(f"what it answered is no HTTP: {error}"))
            return
        if answer.waiting > MAX_BUFFERED and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._tell()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._answer is not None and exc is None and self._error is None:
            self._answer.ended()
        if exc is not None:
            self._error = self._error or UpstreamError(f"the connection broke: {exc}")
        self._writable.set()
        self._tell()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _asked(self) -> _Answer:
        assert self._answer is not None
        return self._answer

    async def _more(self) -> None:
        self._wake = self._loop.create_future()
        await self._wake

    def _tell(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _why(self) -> Exception:
        return self._error or UpstreamError("it closed the connection before its answer was whole")


class _Malformed(Exception):
    pass


class _Answer:
    """One answer, as far as it has come. The parser calls its `on_…`."""

    def __init__(self, without_body: bool) -> None:
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []
        self.waiting = 0
        self.begun = False
        self.whole = False
        self.keep = True
        self._without_body = without_body
        self._parser: Any = httptools.HttpResponseParser(self)
        self._head = 0
        self._left: int | None = None
        self._until_close = False

    def feed(self, data: bytes) -> None:
        self.begun = True
        if self.status is None:
            self._head += len(data)
        elif self._left is not None:
            self._take(data)
            return
        self._parser.feed_data(data)
        if self.status is None and self._head > _MAX_HEAD_BYTES:
            raise _Malformed("its headers are too long")

    def ended(self) -> None:
        """The connection was closed in order: of an answer without a length that is the end."""
        if self._until_close:
            self.whole = True

    def _take(self, data: bytes) -> None:
        assert self._left is not None
        if len(data) > self._left:
            raise _Malformed("it sent more than it announced")
        self._left -= len(data)
        self.pieces.append(data)
        self.waiting += len(data)
        self.whole = self._left == 0

    def on_message_begin(self) -> None:
        if self.status is not None:
            raise _Malformed("it sent a second answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            if status == 101:
                raise _Malformed("it changed the protocol, unasked")
            return
        self.keep = self._parser.should_keep_alive()
        lengths = {value for name, value in self.headers if name == b"content-length"}
        codings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
        if len(lengths) + len(codings) > 1 or codings not in ([], [b"chunked"], [b"identity"]):
            raise _Malformed("its length is not clear")
        self.status = status
        if self._without_body or status in (204, 304):
            self.whole = True
        elif codings != [b"chunked"] and lengths:
            self._left = int(lengths.pop())
            self.whole = self._left == 0
        elif codings != [b"chunked"]:
            self._until_close = True
            self.keep = False

    def on_body(self, body: bytes) -> None:
        if self._left is not None:
            self._take(body)
        elif not self.whole:
            self.pieces.append(body)
            self.waiting += len(body)
        else:
            raise _Malformed("it sent a body where none may be")

    def on_message_complete(self) -> None:
        if self.status is None:
            self.headers.clear()  # an interim response (1xx)
        else:
            self.whole = True


async def connect(host: str, port: int) -> Connection:
    """A new connection; Unreachable says why there is none."""
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
