"""Long work in a thread that ends when the client disconnects or the server shuts down.

A thread cannot be stopped from outside. So long work gets a check function, which it calls now and
then and which raises `Cancelled`: then its memory, its thread and its request slot become free.
"""

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
    """Do `work(check)` in a thread. The body of the request must have been read already."""
    stopping: threading.Event = request.app.state.service.stopping
    disconnected = threading.Event()

    def check() -> None:
        if disconnected.is_set() or stopping.is_set():
            raise Cancelled("the request was cancelled", hint="send it again")

    watcher = asyncio.create_task(_wait_for_disconnect(request))
    watcher.add_done_callback(lambda _: disconnected.set())
    try:
        return await run_in_threadpool(work, check)
    finally:
        watcher.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
