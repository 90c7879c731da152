"""The output of a task's container: complete, and no line twice, whatever breaks meanwhile.

The log is followed, line by line. What a task writes faster than that is read in one piece, and
then followed again, at once: the node begins another file at 10 MB, and can only be asked for the
file that it writes. A stream that may be open when that happens is not interrupted.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from io import FileIO
from pathlib import Path
from typing import Any

from clew.errors import ClewError, NotFound
from clew.kube.backend.log_positions import LogLines, Position
from clew.kube.backend.rest_client import RestClient

_LOG = logging.getLogger("clew.kube")
MAX_BYTES = 1 << 30
"""The rest of a longer output is not kept."""
_PAUSE_SECONDS = 1.0
_BURST = 2000
"""After so many pieces in a second, what follows is read in one piece."""
_SILENT_SECONDS = 0.1
"""How long a stream brings nothing after the end of its container, before the rest is read."""
_ONE_FILE = 8 << 20
"""Bytes of which the node certainly has all."""


class PodLog:
    """Copies the output of one container to a file. For one event loop."""

    def __init__(
        self, client: RestClient, namespace: str, pod: str, container: str, file: Path
    ) -> None:
        self._client = client
        self._source = (namespace, pod, container)
        self._file = file
        self._ended = asyncio.Event()
        self._position: Position | None = None
        self.size = 0
        """How many bytes are copied."""

    def end(self) -> None:
        """The container has ended: what is read from now on is all there is. A stream that ended
        before may only have been interrupted."""
        self._ended.set()

    async def copy(self) -> None:
        """Return when everything is copied, or the Pod is gone."""
        follow = True
        with self._file.open("wb", buffering=0) as output:
            while self.size < MAX_BYTES:
                last = self._ended.is_set()
                try:
                    reading = self._read(output, follow=follow and not last, last=last)
                    pieces = await (reading if last else self._until_silent(reading))
                    if last:
                        return
                    if self._ended.is_set():
                        continue
                    if not follow or pieces >= _BURST:
                        follow = not follow
                        continue
                except NotFound:
                    return
                except ClewError as error:
                    _LOG.info("the log of %s was interrupted: %s", self._source[1], error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), _PAUSE_SECONDS)

    async def _until_silent(self, reading: Coroutine[Any, Any, int]) -> int:
        """Read a stream; that of a container that has ended, until it brings nothing for a moment:
        the node closes it up to a second later."""
        task, ended = asyncio.create_task(reading), asyncio.create_task(self._ended.wait())
        try:
            await asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED)
            size = -1
            while not task.done() and size < self.size:
                size = self.size
                limit = _SILENT_SECONDS if size < _ONE_FILE else None
                await asyncio.wait({task}, timeout=limit)
            return task.result() if task.done() else 0
        finally:
            ended.cancel()
            task.cancel()  # without effect if it is done
            await asyncio.wait({task, ended})

    async def _read(self, output: FileIO, *, follow: bool, last: bool) -> int:
        """Copy what comes after the position, until the stream ends or there is too much of it;
        how many pieces came in the last second."""
        lines, pieces = LogLines(self._position), 0
        clock = asyncio.get_running_loop().time
        second = clock()
        try:
            async with self._client.stream_log(
                *self._source, since=self._position and self._position.since, follow=follow
            ) as stream:
                async for piece in stream:
                    self._write(output, lines.feed(piece))
                    pieces += 1
                    if clock() > second + 1:
                        second, pieces = clock(), 0
                    if self.size >= MAX_BYTES or (follow and pieces >= _BURST):
                        return pieces
                if last:  # else a line without an end is read again, with its rest
                    self._write(output, lines.end())
                return pieces
        finally:
            if lines.position.time:
                self._position = lines.position

    def _write(self, output: FileIO, text: bytes) -> None:
        if text:
            self.size += output.write(text[: MAX_BYTES - self.size])
