"""Work in a thread that ends when nobody wants it any more.

A thread cannot be stopped from outside. So long work is given a function that it calls now and
then, and that raises once the client has gone away or the server is to end: then its memory, its
thread and its place among the requests under way are free for others.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from clew.errors import ClewError

Check = Callable[[], None]
Result = TypeVar("Result")


class Cancelled(ClewError):
    code = "cancelled"
    http_status = 503


async def run_cancellable(request: Request, work: Callable[[Check], Result]) -> Result:
    """Do `work` in a thread, with its check. The body of the request must have been read."""
    stopping: threading.Event = request.app.state.service.stopping
    gone = threading.Event()

    def check() -> None:
        if gone.is_set() or stopping.is_set():
            raise Cancelled("the request was cancelled", hint="send it again")

    watching = asyncio.create_task(_disconnected(request))
    watching.add_done_callback(lambda _: gone.set())
    try:
        return await run_in_threadpool(work, check)
    finally:
        watching.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
