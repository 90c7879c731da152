"""The output of a task: from the directory of its run while it runs, later from the store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import structs

from clew.api.local.versions import chunks
from clew.documents.pipelines.runs import LogPart, Task
from clew.errors import NotFound
from clew.pipelines.runner.live_logs import MAX_BYTES, LiveLogs
from clew.prov.queries.executions import find_execution
from clew.prov.queries.pipelines.runs import find_run
from clew.prov.queries.pipelines.runs import get_task as find_task

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState

_POLL_SECONDS = 0.1
"""Seconds between checks for new output."""


def read_output(project: ProjectState, text: str, offset: int) -> LogPart:
    now = _read_live(project, text, offset)
    if now is not None:
        return now
    task = _task(project, text)
    if task.id != text:  # `text` was only the last part of its name
        return read_output(project, task.id, offset)
    if not task.execution:
        return LogPart(data=b"", complete=task.state not in ("pending", "running"), attempt="")
    data = b""
    for piece in _read_stored(project, task, offset):
        data += piece
        if len(data) > MAX_BYTES:
            break
    attempt = find_execution(project.graph, task.execution).uid
    return LogPart(data=data[:MAX_BYTES], complete=len(data) <= MAX_BYTES, attempt=attempt)


def logs(project: ProjectState, text: str, *, follow: bool) -> Iterator[bytes]:
    begun = _read_live(project, text, 0) is not None  # the graph may not have the task yet
    id_ = text if begun else _task(project, text).id
    offset, attempt = 0, ""
    while (now := _read_live(project, id_, offset)) or (follow and _is_active(project, id_)):
        if now and now.attempt != attempt:
            again, offset, attempt = bool(offset), 0, now.attempt
            if again:
                continue
        if now and now.data:
            yield now.data
            offset += len(now.data)
        elif not follow or (now and now.complete):
            return
        else:
            time.sleep(_POLL_SECONDS)
    task = _task(project, id_)
    if not task.execution:
        why = task.why or task.error or task.state
        raise NotFound(f"{task.id} has printed nothing: {why}", hint="clew pipeline show")
    if attempt not in ("", find_execution(project.graph, task.execution).uid):
        offset = 0
    yield from _read_stored(project, task, offset)


def _read_live(project: ProjectState, text: str, offset: int) -> LogPart | None:
    """The output so far of a running task, by its full name; None if it does not run."""
    run, _, name = text.partition("/")
    uid = find_run(project.graph, run).uid
    alive = project.is_alive(uid)
    found = LiveLogs(project.directory.spool / uid).read(name, offset)
    if found is None or alive:
        return found
    return structs.replace(found, complete=len(found.data) < MAX_BYTES)  # the run was killed


def _task(project: ProjectState, text: str) -> Task:
    return find_task(project.graph, text, alive=project.is_alive)


def _is_active(project: ProjectState, text: str) -> bool:
    return _task(project, text).state in ("pending", "running")


def _read_stored(project: ProjectState, task: Task, offset: int) -> Iterator[bytes]:
    try:
        yield from chunks(project, f"{task.execution}:stdout", start=offset)
    except NotFound as error:
        if error.code != "not-found":
            raise  # there is output, but only its digest was stored
