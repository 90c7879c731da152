"""Servers behind the proxy: sockets that answer exactly what a test specifies."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextmanager
def run_upstream(handler: Handler) -> Iterator[int]:
    """Answer each connection by `handler`, in a thread; return the port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await handler(reader, writer)
        finally:
            writer.close()

    async def listen() -> asyncio.Server:
        return await asyncio.start_server(answer, "127.0.0.1", 0)

    async def end() -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def read_head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


def respond_with(text: bytes) -> Handler:
    """Answer every request with the same bytes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(text)
        await writer.drain()

    return handler


class TargetTable:
    """The file with the targets of a server's proxy."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: dict[str, str] = {}
        self._write()

    def add(self, name: str, port: int, more: str = "") -> None:
        self._entries[name] = f'address = "127.0.0.1:{port}"\n{more}\n'
        self._write()

    def _write(self) -> None:
        text = "".join(f'["{name}"]\n{entry}' for name, entry in self._entries.items())
        draft = self.path.with_suffix(".draft")
        draft.write_text(text)
        draft.rename(self.path)
