"""What a task prints, followed by any number: one reader for all of them.

A follower first reads by itself what is there; from then on it is given what the reader of this
log finds, who keeps the last of it in memory. One that falls behind reads by itself again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool

from clew.pipelines.runs.live_logs import MOST, Said, Sayings
from clew.run import execution_locks
from clew.server.polling_feed import Feed
from clew.server.service import Service
from clew.server.v1.run_progress import database_version

_KEPT = 4 * MOST
"""Bytes of a log that are kept for those who follow it."""
_AT_ONCE = 16
"""Pieces that are read at one look."""


class LogChunk(NamedTuple):
    """Some of what was printed, from the byte `offset` on."""

    attempt: str
    """Who printed it; another one than before begins at 0."""
    offset: int
    data: bytes
    over: bool
    """There is no more after this."""

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class LogFeed(Feed):
    """What one task prints after a piece that is known. `task`: as it is called anywhere; `run`:
    the uid of its run."""

    def __init__(self, service: Service, run: str, task: str, known: LogChunk) -> None:
        super().__init__()
        self.last = known._replace(offset=known.end, data=b"")
        """The last bytes there are."""
        self._service = service
        self._run = run
        self._task = task
        self._name = task.partition("/")[2]
        self._seen: object = None

    def poll(self) -> bool:
        before = self.last
        for _ in range(_AT_ONCE):
            found = self._read(self.last.end)
            if found is None or not self._take(found):
                break
        return self.last != before

    def _read(self, at: int) -> Said | None:
        """From the file that the task writes; the database is asked only when that is gone, or
        nobody writes it, and then only after it has changed. None: nothing can be new."""
        alive = execution_locks.is_alive(self._service.folder, self._run)
        found = Sayings(self._service.folder.spool / self._run).read(self._name, at)
        if found is not None and alive:
            return found
        seen = (database_version(self._service), alive, found is None, at)
        if seen == self._seen:
            return None
        self._seen = seen
        return read_log(self._service, self._task, at)

    def _take(self, found: Said) -> bool:
        """Whether there may be more."""
        last = self.last
        if _is_another(found.attempt, last.attempt):
            self.last = LogChunk(found.attempt, 0, b"", False)
            return True  # what was read is not its beginning
        data = (last.data + found.data)[-_KEPT:]
        start = last.end + len(found.data) - len(data)
        self.last = LogChunk(found.attempt or last.attempt, start, data, found.over)
        self.finished = found.over
        return bool(found.data)


def _is_another(attempt: str, before: str) -> bool:
    """Whether these are two tries; where one is not known, it may be the other."""
    return bool(attempt and before and attempt != before)


def read_log(service: Service, task: str, offset: int) -> Said:
    with service.project() as project:
        return project.pipelines.said(task, offset)


async def follow_log(
    service: Service, run: str, task: str, *, attempt: str, offset: int, follow: bool
) -> AsyncIterator[LogChunk | None]:
    """What the task printed from there on, until it ends; without `follow`, until there is no more
    at the moment. None: for a while there was nothing."""
    at = LogChunk(attempt, offset, b"", False)
    while True:
        at = await _by_itself(service, task, at)
        if at.data or at.over:
            yield at
        if at.over or (not at.data and not follow):
            return
        if not at.data:
            break
    make = partial(LogFeed, service, run, task, at)
    async with service.feeds.follow(("log", run, task), make) as feed:
        while not service.feeds.ending:
            change, last = feed.change(), feed.last
            if last.attempt != at.attempt or at.end < last.offset:
                found = await _by_itself(service, task, at)
            else:
                found = LogChunk(at.attempt, at.end, last.data[at.end - last.offset :], last.over)
            new = found.data or found.over or found.attempt != at.attempt
            if new:
                at = found
                yield at
            if at.over:
                return
            if not new and not await service.feeds.wait(change):
                yield None


async def _by_itself(service: Service, task: str, at: LogChunk) -> LogChunk:
    """What comes after a piece, as far as it can be had at once."""
    found = await run_in_threadpool(read_log, service, task, at.end)
    if _is_another(found.attempt, at.attempt):
        found = await run_in_threadpool(read_log, service, task, 0)
        return LogChunk(found.attempt, 0, found.data, found.over)
    return LogChunk(found.attempt or at.attempt, at.end, found.data, found.over)
