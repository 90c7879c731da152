"""The log of a task from any byte offset, as plain text or as server-sent events."""

import re
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Annotated

from fastapi import Header, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from clew.documents.ids import TaskId, Uid
from clew.documents.pipelines.runs import LogPart
from clew.pipelines.runs.run_list import find_uid
from clew.server.http.server_sent_events import (
    KEEPALIVE,
    MEDIA_TYPE,
    OPENAPI_CONTENT,
    RETRY,
    encode_event,
    stream_response,
)
from clew.server.server_state import Service
from clew.server.v1.dependencies import ProjectDep, ServiceDep
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.runs.log_feed import LogChunk, follow_log
from clew.server.v1.runs.runs import Id, TaskName, full_task_id

router = DocumentRouter(tags=["runs"])

_MAX_OFFSET = 1 << 40
"""Larger than any log, but still a valid file offset."""
_EVENT_ID = re.compile(r"([0-9a-f]{0,32}):(\d{1,15})")


@router.get(
    "/tasks/{run}/{task:path}/log",
    response_class=Response,
    responses={
        200: {
            "description": "Bytes; or, where `Accept` asks for it, an event for each chunk:"
            " `{offset, text}`, `attempt` when another attempt starts, `end` at the end.",
            "content": {"text/plain": {"schema": {"type": "string"}}, **OPENAPI_CONTENT},
        }
    },
)
async def get_log(
    service: ServiceDep,
    run: Id,
    task: TaskName,
    offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET, description="The first byte.")] = 0,
    follow: Annotated[
        bool, Query(description="Continue until the task ends; event streams always do.")
    ] = False,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """The output of a task's last attempt."""
    uid, name = await run_in_threadpool(_find, service, run, task)
    if MEDIA_TYPE not in accept:
        chunks = follow_log(service, uid, name, attempt="", offset=offset, follow=follow)
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
        return StreamingResponse(_text_stream(chunks), media_type="text/plain", headers=headers)
    attempt = ""
    if last_event_id and (match := _EVENT_ID.fullmatch(last_event_id)):
        attempt, offset = match[1], min(int(match[2]), _MAX_OFFSET)
    chunks = follow_log(service, uid, name, attempt=attempt, offset=offset, follow=True)
    return stream_response(_event_stream(chunks, attempt))


@router.get("/tasks/{run}/{task:path}/log/part")
def get_log_part(
    project: ProjectDep,
    run: Id,
    task: TaskName,
    offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET, description="The first byte.")] = 0,
) -> LogPart:
    """The output of the last attempt from byte `offset` on, as far as it is known now: at most
    256 KiB. When `attempt` changes, begin again at 0."""
    return project.pipelines.read_log(full_task_id(project, run, task), offset)


def _find(service: Service, run: str, task: str) -> tuple[Uid, TaskId]:
    """The uid of the run, and the full id of the task."""
    with service.project() as project:
        uid = find_uid(project.graph, run)
        task_id = project.pipelines.task(full_task_id(project, run, task)).id
        # Raise before the response starts if the log is unreadable.
        project.pipelines.read_log(task_id, _MAX_OFFSET)
        return uid, task_id


async def _text_stream(chunks: AsyncIterator[LogChunk | None]) -> AsyncIterator[bytes]:
    attempt = None
    async for chunk in chunks:
        if chunk is None:
            continue
        if chunk.attempt not in (attempt or chunk.attempt, ""):
            return  # another attempt starts its own log
        attempt = chunk.attempt
        yield chunk.data


async def _event_stream(
    chunks: AsyncIterator[LogChunk | None], attempt: str
) -> AsyncIterator[bytes]:
    yield RETRY
    rest = b""
    async for chunk in chunks:
        if chunk is None:
            yield KEEPALIVE
            continue
        if chunk.attempt != attempt:
            rest = b""
            attempt = chunk.attempt
            yield encode_event({"attempt": attempt}, kind="attempt", id=f"{attempt}:{chunk.offset}")
        text, rest = split_incomplete(rest + chunk.data, chunk.finished)
        if text:
            end = chunk.end - len(rest)
            yield _encode_chunk(attempt, end - len(text), text)
        if chunk.finished:
            yield encode_event({"offset": chunk.end}, kind="end")


@lru_cache(maxsize=8)
def _encode_chunk(attempt: str, offset: int, text: bytes) -> bytes:
    """Cached, because all followers of a log get the same chunks."""
    data = {"offset": offset, "text": text.decode(errors="replace")}
    return encode_event(data, id=f"{attempt}:{offset + len(text)}")


def split_incomplete(data: bytes, finished: bool) -> tuple[bytes, bytes]:
    """Split off an incomplete UTF-8 character at the end, unless no more data follows."""
    if finished:
        return data, b""
    for size in range(1, min(4, len(data) + 1)):
        first = data[-size]
        if first >= 0xC0:  # a multi-byte character starts here
            length = 2 + (first >= 0xE0) + (first >= 0xF0)
            return (data[:-size], data[-size:]) if length > size else (data, b"")
        if first < 0x80:
            break
    return data, b""
