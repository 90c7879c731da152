"""Connections that cannot be held for nothing: each must say what it wants, and take what it gets.

HTTP itself is uvicorn's. It lacks these limits: a time until the head of a request must be there,
a bound for the length of that head and of the trailers behind a chunked body, a time in which a
reader must take something, and a time after which a connection is closed whose request was answered
before its body came.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from clew.server.http.client_limits import Limits

_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class TimeoutProtocol(HttpToolsProtocol):
    limits = Limits()
    _in_head = True
    _unused = 0
    """Bytes since a head was complete or part of a body came: a head, trailers, extensions."""
    _used = False
    _handed_over = False
    _until: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # uvicorn narrows the type of the transport as well
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        self._is_taken()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._used = False
        super().data_received(data)
        if not self._used:
            self._unused += len(data)
        if self._unused > self.limits.head and not self.transport.is_closing():
            if self._in_head:
                self.transport.write(_TOO_LONG)
                self.transport.close()
            else:
                self.transport.abort()
        elif self._until is None and self._between_requests():
            # uvicorn stops its own timer whatever comes, and starts it only after an answer.
            self._expect_head()

    def handle_websocket_upgrade(self) -> None:
        super().handle_websocket_upgrade()
        self._handed_over = True

    def _between_requests(self) -> bool:
        """Whether nothing is being answered, and the connection is still one for requests."""
        cycle: RequestResponseCycle | None = self.cycle
        return not self._handed_over and cycle is not None and cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._expect_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer: unchecked, and nothing here uses one
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head_is_there()
        self._use()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._use()
        super().on_body(body)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(self.limits.taken_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._is_taken()
        super().resume_writing()

    def _is_taken(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()

    def _use(self) -> None:
        self._used, self._unused = True, 0

    def _expect_head(self) -> None:
        self._stop_waiting()
        self._until = self.loop.call_later(self.limits.head_seconds, self.transport.abort)

    def _head_is_there(self) -> None:
        self._in_head = False
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._until is not None:
            self._until.cancel()
            self._until = None


def make_protocol(limits: Limits) -> type[TimeoutProtocol]:
    """The protocol of a server with these limits."""
    return type("TimeoutProtocol", (TimeoutProtocol,), {"limits": limits})
