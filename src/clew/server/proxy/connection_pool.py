"""Idle connections to targets, kept for reuse: a page makes many small requests."""

import asyncio

from clew.server.proxy.http_client import Connection, connect
from clew.server.proxy.targets import Target

_MAX_IDLE = 16
"""Idle connections of each target."""
_IDLE_SECONDS = 4.0
"""Less than servers keep an idle connection (uvicorn: 5)."""


class Pool:
    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], dict[Connection, asyncio.TimerHandle]] = {}

    async def acquire(self, target: Target, *, new: bool) -> Connection:
        """A connection to this target; `new`: do not reuse one."""
        idle = self._idle.get((target.host, target.port))
        while idle and not new:
            found, timer = idle.popitem()
            timer.cancel()
            if not found.closed:
                return found
        return await connect(target.host, target.port)

    def release(self, target: Target, connection: Connection, *, reuse: bool) -> None:
        """Take back a connection after its exchange, or close it.

        `reuse` is false after a request with a body: should a target ever read that body as a
        second request, no other client is connected to receive the answer.
        """
        idle = self._idle.setdefault((target.host, target.port), {})
        if not reuse or not connection.reusable or len(idle) >= _MAX_IDLE:
            connection.abort()
            return
        connection.end()
        loop = asyncio.get_running_loop()
        idle[connection] = loop.call_later(_IDLE_SECONDS, self._drop, target, connection)

    def _drop(self, target: Target, connection: Connection) -> None:
        address = (target.host, target.port)
        idle = self._idle.get(address, {})
        idle.pop(connection, None)
        connection.abort()
        if not idle:
            self._idle.pop(address, None)
