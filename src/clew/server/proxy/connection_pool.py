"""Connections that wait for another exchange: a page asks for many small things."""

from __future__ import annotations

import asyncio

from clew.server.proxy.http_client import Connection, connect
from clew.server.proxy.targets import Target

_EACH = 16
"""Connections that may wait, for each target."""
_SECONDS = 4.0
"""How long: less than servers keep one (uvicorn: 5)."""


class Pool:
    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], dict[Connection, asyncio.TimerHandle]] = {}

    async def take(self, target: Target, *, new: bool) -> Connection:
        """One to this target; `new`: that nobody has used before."""
        waiting = self._idle.get((target.host, target.port))
        while waiting and not new:
            found, timer = waiting.popitem()
            timer.cancel()
            if not found.closed:
                return found
        return await connect(target.host, target.port)

    def give(self, target: Target, connection: Connection, *, reuse: bool) -> None:
        """Take back a connection after its exchange, or close it.

        `reuse` is false after a request with a body: should a target ever read that body as a
        second request, no other client is connected to receive the answer.
        """
        waiting = self._idle.setdefault((target.host, target.port), {})
        if not reuse or not connection.reusable or len(waiting) >= _EACH:
            connection.abort()
            return
        connection.end()
        loop = asyncio.get_running_loop()
        waiting[connection] = loop.call_later(_SECONDS, self._drop, target, connection)

    def _drop(self, target: Target, connection: Connection) -> None:
        place = (target.host, target.port)
        waiting = self._idle.get(place, {})
        waiting.pop(connection, None)
        connection.abort()
        if not waiting:
            self._idle.pop(place, None)
