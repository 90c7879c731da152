"""Follows the log of a task: one reader serves any number of followers.

A follower first reads the existing log itself. From then on it gets what the shared reader finds,
which keeps the last part of the log in memory. A follower that falls behind reads for itself again.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool

from clew.documents.ids import TaskId, Uid
from clew.documents.pipelines.runs import LogPart
from clew.pipelines.runner.live_logs import MAX_BYTES, LiveLogs
from clew.run import spool_directories
from clew.server.polling_feed import Feed
from clew.server.server_state import Service
from clew.server.v1.runs.run_progress import database_version

_BUFFER_BYTES = 4 * MAX_BYTES
"""The last part of a log, kept for its followers."""
_READS_PER_POLL = 16


class LogChunk(NamedTuple):
    """Part of a log, from the byte `offset` on."""

    attempt: str
    """The attempt that printed it. Offsets start at 0 in each attempt."""
    offset: int
    data: bytes
    finished: bool
    """The log ends here."""

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class LogFeed(Feed):
    """The log of one task after a known chunk. `task`: its full id; `run`: the uid of its run."""

    def __init__(self, service: Service, run: Uid, task: TaskId, known: LogChunk) -> None:
        super().__init__()
        self.last = known._replace(offset=known.end, data=b"")
        """The last bytes of the log."""
        self._service = service
        self._run = run
        self._task = task
        self._name = task.partition("/")[2]
        self._seen: object = None

    def poll(self) -> bool:
        before = self.last
        for _ in range(_READS_PER_POLL):
            found = self._read(self.last.end)
            if found is None or not self._append(found):
                break
        return self.last != before

    def _read(self, at: int) -> LogPart | None:
        """Read the file that the task writes. Query the database only if the file is gone or no
        longer written, and only after the database has changed. None: nothing can be new."""
        alive = spool_directories.is_alive(self._service.directory, self._run)
        chunk = LiveLogs(self._service.directory.spool / self._run).read(self._name, at)
        if chunk is not None and alive:
            return chunk
        seen = (database_version(self._service), alive, chunk is None, at)
        if seen == self._seen:
            return None
        self._seen = seen
        return read_log(self._service, self._task, at)

    def _append(self, found: LogPart) -> bool:
        """Whether there may be more."""
        last = self.last
        if _is_another(found.attempt, last.attempt):
            self.last = LogChunk(found.attempt, 0, b"", False)
            return True  # read again: this was not the start of its log
        data = (last.data + found.data)[-_BUFFER_BYTES:]
        start = last.end + len(found.data) - len(data)
        self.last = LogChunk(found.attempt or last.attempt, start, data, found.complete)
        self.finished = found.complete
        return bool(found.data)


def _is_another(attempt: str, before: str) -> bool:
    """Whether the attempts differ; an unknown attempt may be the same."""
    return bool(attempt and before and attempt != before)


def read_log(service: Service, task: TaskId, offset: int) -> LogPart:
    with service.project() as project:
        return project.pipelines.read_log(task, offset)


async def follow_log(
    service: Service, run: Uid, task: TaskId, *, attempt: str, offset: int, follow: bool
) -> AsyncIterator[LogChunk | None]:
    """The log from `offset` on, until the task ends; without `follow`, until the present end. None:
    time for a keepalive."""
    at = LogChunk(attempt, offset, b"", False)
    while True:
        at = await _read_directly(service, task, at)
        if at.data or at.finished:
            yield at
        if at.finished or (not at.data and not follow):
            return
        if not at.data:
            break
    make = partial(LogFeed, service, run, task, at)
    async with service.feeds.follow(("log", run, task), make) as feed:
        while not service.feeds.ending:
            change, last = feed.change(), feed.last
            if last.attempt != at.attempt or at.end < last.offset:
                found = await _read_directly(service, task, at)
            else:
                found = LogChunk(
                    at.attempt, at.end, last.data[at.end - last.offset :], last.finished
                )
            new = found.data or found.finished or found.attempt != at.attempt
            if new:
                at = found
                yield at
            if at.finished:
                return
            if not new and not await service.feeds.wait(change):
                yield None


async def _read_directly(service: Service, task: TaskId, at: LogChunk) -> LogChunk:
    """The next chunk after `at`, read without the feed."""
    found = await run_in_threadpool(read_log, service, task, at.end)
    if _is_another(found.attempt, at.attempt):
        found = await run_in_threadpool(read_log, service, task, 0)
        return LogChunk(found.attempt, 0, found.data, found.complete)
    return LogChunk(found.attempt or at.attempt, at.end, found.data, found.complete)
