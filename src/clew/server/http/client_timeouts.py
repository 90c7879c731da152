"""Timeouts and size limits of connections that uvicorn lacks.

They are: a timeout for receiving the head of a request, a size limit for the head and for the
trailers of a chunked body, a timeout for a client that does not read its response, and one for a
connection whose request was answered before its body arrived.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from clew.server.http.client_limits import Limits

_HEAD_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class TimeoutProtocol(HttpToolsProtocol):
    limits = Limits()
    _in_head = True
    _unparsed = 0
    """Bytes since the last complete head or part of a body: a head, trailers, extensions."""
    _progressed = False
    _is_websocket = False
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # uvicorn narrows the type of the transport as well
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._cancel_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._progressed = False
        super().data_received(data)
        if not self._progressed:
            self._unparsed += len(data)
        if self._unparsed > self.limits.head_bytes and not self.transport.is_closing():
            if self._in_head:
                self.transport.write(_HEAD_TOO_LARGE)
                self.transport.close()
            else:
                self.transport.abort()
        elif self._head_timer is None and self._is_idle():
            # Any data stops uvicorn's keep-alive timer; only a response starts it again.
            self._start_head_timer()

    def handle_websocket_upgrade(self) -> None:
        super().handle_websocket_upgrade()
        self._is_websocket = True

    def _is_idle(self) -> bool:
        """Whether no response is in progress, and the connection still takes requests."""
        cycle: RequestResponseCycle | None = self.cycle
        return not self._is_websocket and cycle is not None and cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._start_head_timer()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # ignore trailers: they are not checked, and not used here
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_head()
        self._mark_progress()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._mark_progress()
        super().on_body(body)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._cancel_write_timer()
        super().resume_writing()

    def _cancel_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()

    def _mark_progress(self) -> None:
        self._progressed, self._unparsed = True, 0

    def _start_head_timer(self) -> None:
        self._cancel_head_timer()
        self._head_timer = self.loop.call_later(self.limits.head_seconds, self.transport.abort)

    def _end_head(self) -> None:
        self._in_head = False
        self._cancel_head_timer()

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def make_protocol(limits: Limits) -> type[TimeoutProtocol]:
    """The uvicorn protocol class that enforces these limits."""
    return type("TimeoutProtocol", (TimeoutProtocol,), {"limits": limits})
