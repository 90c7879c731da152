"""Connections that cannot be held for nothing: each must say what it wants, and take what it gets.

HTTP itself is uvicorn's. What it lacks are these: a time until the head of a request must be there,
a bound for how long that head is, and a time in which a reader must take something.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clew.server.limits import Limits

_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class Guarded(HttpToolsProtocol):
    limits = Limits()
    _in_head = True
    _head = 0
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
        within = self._in_head  # else it begins with the end of something else
        super().data_received(data)
        if within and self._in_head:
            self._head += len(data)
        if self._in_head and self._head > self.limits.head and not self.transport.is_closing():
            self.transport.write(_TOO_LONG)
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._head_is_there()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(self.limits.taken_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._is_taken()
        super().resume_writing()

    def _is_taken(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()

    def _expect_head(self) -> None:
        if not self._in_head:
            self._in_head, self._head = True, 0
        self._stop_waiting()
        self._until = self.loop.call_later(self.limits.head_seconds, self.transport.abort)

    def _head_is_there(self) -> None:
        self._in_head = False
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._until is not None:
            self._until.cancel()


def guarded(limits: Limits) -> type[Guarded]:
    """The protocol of a server with these limits."""
    return type("Guarded", (Guarded,), {"limits": limits})
