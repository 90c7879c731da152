"""The bytes of a log: a file that grows while a command runs, later content of the store."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clew.api.local.project import LocalProject
from clew.api.local.versions import check_stored, find_stored
from clew.documents.ids import Digest, TaskId, Uid
from clew.errors import NotFound
from clew.pipelines.runner.live_logs import LiveLogs
from clew.prov.queries.pipelines.runs import find_run
from clew.store import Store

Stream = Literal["stdout", "stderr"]
_READ_BYTES = 1 << 20
_ACTIVE = ("pending", "running")


@dataclass(frozen=True)
class LogSource:
    """The location of the bytes of a log: `file`, or the store; neither if nothing was printed."""

    attempt: str
    """The uid of the execution that prints it; empty before it runs."""
    complete: bool
    """Nothing follows."""
    store: Path
    file: Path | None = None
    digest: Digest | None = None
    size: int = 0
    """The size of the content in the store."""

    def read(self, start: int, stop: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` to before `stop`, or to the end so far."""
        if self.file is not None:
            yield from self._read_file(self.file, start, stop)
        elif self.digest is not None:
            end = self.size if stop is None else min(stop, self.size)
            if start < end:
                with Store(self.store) as store:
                    yield from store.read_part(self.digest, start, end)

    def _read_file(self, path: Path, start: int, stop: int | None) -> Iterator[bytes]:
        with suppress(FileNotFoundError), open(path, "rb") as file:
            file.seek(start)
            left = -1 if stop is None else stop - start
            while left and (data := file.read(min(_READ_BYTES, left) if left > 0 else _READ_BYTES)):
                yield data
                left -= len(data) if left > 0 else 0


def find_task_log(project: LocalProject, task: TaskId) -> LogSource:
    """The log of the last attempt of a task, by its full id."""
    run, _, name = task.partition("/")
    uid = find_run(project.graph, run).uid
    file = LiveLogs(project.directory.spool / uid).find(name)
    if file is not None:
        attempt = file.name.rpartition("-")[2]
        complete = not project.is_alive(uid)
        return LogSource(attempt, complete, project.directory.store, file=file)
    found = project.pipelines.task(task)
    if found.id != task:  # `task` has only the last part of its name
        return find_task_log(project, found.id)
    if not found.execution:
        return LogSource("", found.state not in _ACTIVE, project.directory.store)
    return find_stream(project, found.execution, "stdout")


def find_stream(project: LocalProject, execution: str, stream: Stream) -> LogSource:
    """The log of one stream of an execution."""
    found = project.execution(execution)
    store = project.directory.store
    if found.state == "running":
        file = project.directory.spool / found.uid / stream
        return LogSource(found.uid, complete=False, store=store, file=file)
    try:
        target = find_stored(project, f"{found.id}:{stream}")
    except NotFound:  # nothing was printed there
        return LogSource(found.uid, complete=True, store=store)
    with Store(store) as opened:
        check_stored(project, opened, target)
        assert target.digest is not None
        size = opened.size(target.digest)
    return LogSource(Uid(found.uid), complete=True, store=store, digest=target.digest, size=size)
