"""Logs by lines, for logs of any size: of tasks, and of the streams of executions.

The web app shows the blocks that the user scrolls to, and asks again while the log grows.
"""

from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from clew.documents.pipelines.logs import LogLines, LogMatches
from clew.errors import Conflict
from clew.server.logs.log_reader import LogReader
from clew.server.logs.log_source import LogSource, Stream, find_stream, find_task_log
from clew.server.v1.dependencies import ProjectDep, Text
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.runs.runs import Id, TaskName, full_task_id

router = DocumentRouter(tags=["logs"])

ExecutionId = Annotated[Text, Path(description="`e2`, its name, or its uid.", examples=["e1"])]
Block = Annotated[int, Path(ge=0, le=10**9, description="The number of the block, from 0.")]
FirstBlock = Annotated[
    int, Query(alias="from", ge=0, le=10**9, description="The first block to answer with.")
]
Attempt = Annotated[
    str,
    Query(pattern="^[0-9a-f]{0,32}$", description="409 if another attempt prints by now."),
]
Words = Annotated[
    str, Query(min_length=1, max_length=200, pattern=r"^[^\x00\n]*$", description="What to find.")
]
_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}}
}
_CLOSED = "private, max-age=86400, immutable"


def _reader(request: Request) -> LogReader:
    reader: LogReader = request.app.state.logs
    return reader


@router.get("/tasks/{run}/{task:path}/log/lines")
def get_task_lines(
    request: Request, project: ProjectDep, run: Id, task: TaskName, first: FirstBlock = 0
) -> LogLines:
    """How many lines the last attempt has printed, and where their blocks begin."""
    return _lines(request, "log", _task_log(project, run, task), first)


@router.get(
    "/tasks/{run}/{task:path}/log/blocks/{block}", response_class=Response, responses=_BYTES
)
def get_task_block(
    request: Request,
    project: ProjectDep,
    run: Id,
    task: TaskName,
    block: Block,
    attempt: Attempt = "",
) -> Response:
    """One block of the log, as it was printed."""
    return _block(request, "log", _task_log(project, run, task), block, attempt)


@router.get("/tasks/{run}/{task:path}/log/matches")
def search_task_log(
    request: Request, project: ProjectDep, run: Id, task: TaskName, q: Words, first: FirstBlock = 0
) -> LogMatches:
    """The lines that contain a text."""
    return _matches(request, "log", _task_log(project, run, task), q, first)


@router.get("/executions/{id}/streams/{stream}/lines")
def get_stream_lines(
    request: Request,
    project: ProjectDep,
    id: ExecutionId,  # noqa: A002
    stream: Stream,
    first: FirstBlock = 0,
) -> LogLines:
    """How many lines an execution has printed, and where their blocks begin."""
    return _lines(request, stream, find_stream(project, id, stream), first)


@router.get(
    "/executions/{id}/streams/{stream}/blocks/{block}", response_class=Response, responses=_BYTES
)
def get_stream_block(
    request: Request,
    project: ProjectDep,
    id: ExecutionId,  # noqa: A002
    stream: Stream,
    block: Block,
    attempt: Attempt = "",
) -> Response:
    """One block of what an execution printed."""
    return _block(request, stream, find_stream(project, id, stream), block, attempt)


@router.get("/executions/{id}/streams/{stream}/matches")
def search_stream(
    request: Request,
    project: ProjectDep,
    id: ExecutionId,  # noqa: A002
    stream: Stream,
    q: Words,
    first: FirstBlock = 0,
) -> LogMatches:
    """The lines that contain a text."""
    return _matches(request, stream, find_stream(project, id, stream), q, first)


def _task_log(project: ProjectDep, run: str, task: str) -> LogSource:
    return find_task_log(project, full_task_id(project, run, task))


def _key(stream: str) -> str:
    """A task's log is the standard output of its execution."""
    return "stdout" if stream == "log" else stream


def _lines(request: Request, stream: str, source: LogSource, first: int) -> LogLines:
    found = _reader(request).position(_key(stream), source)
    return LogLines(
        attempt=source.attempt,
        complete=source.complete,
        lines=found.lines,
        size=found.size,
        first_block=first,
        blocks=tuple(found.blocks[first:]),
    )


def _block(request: Request, stream: str, source: LogSource, block: int, attempt: str) -> Response:
    if attempt and attempt != source.attempt:
        raise Conflict("another attempt prints this log now", hint="read its lines again")
    data = _reader(request).read_block(_key(stream), source, block)
    caching = _CLOSED if attempt and source.complete else "no-store"
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": caching}
    return Response(data, media_type="text/plain; charset=utf-8", headers=headers)


def _matches(request: Request, stream: str, source: LogSource, text: str, first: int) -> LogMatches:
    found = _reader(request).search(_key(stream), source, text, first_block=first)
    return LogMatches(attempt=source.attempt, lines=tuple(found.lines), next_block=found.next_block)
