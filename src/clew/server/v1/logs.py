"""The log of a task, as server-sent events or as plain text, from any byte on."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from clew.server import run_requests
from clew.server.http.server_sent_events import (
    KEEPALIVE,
    MEDIA_TYPE,
    OPENAPI_CONTENT,
    RETRY,
    encode_event,
    stream_response,
)
from clew.server.service import Service
from clew.server.v1.dependencies import ServiceDep
from clew.server.v1.log_feed import LogChunk, follow_log
from clew.server.v1.runs import Id, TaskName, full_task_id

router = APIRouter(tags=["runs"])

_FAR = 1 << 40
"""Further than any log goes, and not further than a file may be read at."""
_HEARD = re.compile(r"([0-9a-f]{0,32}):(\d{1,15})")


@router.get(
    "/tasks/{run}/{task:path}/log",
    response_class=Response,
    responses={
        200: {
            "description": "Bytes; or, where `Accept` asks for it, an event for each piece:"
            " `{offset, text}`, `attempt` where another try begins anew, `end` at the end.",
            "content": {"text/plain": {"schema": {"type": "string"}}, **OPENAPI_CONTENT},
        }
    },
)
async def get_log(
    service: ServiceDep,
    run: Id,
    task: TaskName,
    offset: Annotated[int, Query(ge=0, le=_FAR, description="The byte to begin at.")] = 0,
    follow: Annotated[bool, Query(description="Until the task ends; events always do.")] = False,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """What a task printed in its last attempt."""
    uid, name = await run_in_threadpool(_find, service, run, task)
    if MEDIA_TYPE not in accept:
        found = follow_log(service, uid, name, attempt="", offset=offset, follow=follow)
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
        return StreamingResponse(_plain(found), media_type="text/plain", headers=headers)
    attempt = ""
    if last_event_id and (heard := _HEARD.fullmatch(last_event_id)):
        attempt, offset = heard[1], min(int(heard[2]), _FAR)
    found = follow_log(service, uid, name, attempt=attempt, offset=offset, follow=True)
    return stream_response(_events(found, attempt))


def _find(service: Service, run: str, task: str) -> tuple[str, str]:
    """The run's uid, and what the task is called anywhere."""
    with service.project() as project:
        uid = run_requests.find_run_uid(project.graph, run)
        known = str(project.pipelines.task(full_task_id(project, run, task))["id"])
        project.pipelines.said(known, _FAR)  # what cannot be read is said before the first byte
        return uid, known


async def _plain(found: AsyncIterator[LogChunk | None]) -> AsyncIterator[bytes]:
    attempt = None
    async for piece in found:
        if piece is None:
            continue
        if piece.attempt not in (attempt or piece.attempt, ""):
            return  # another try: its output does not go on where this one's ended
        attempt = piece.attempt
        yield piece.data


async def _events(found: AsyncIterator[LogChunk | None], attempt: str) -> AsyncIterator[bytes]:
    yield RETRY
    left = b""
    async for piece in found:
        if piece is None:
            yield KEEPALIVE
            continue
        if piece.attempt != attempt:
            left = b""
            attempt = piece.attempt
            yield encode_event({"attempt": attempt}, kind="attempt", id=f"{attempt}:{piece.offset}")
        text, left = split_incomplete(left + piece.data, piece.over)
        if text:
            end = piece.end - len(left)
            yield _event(attempt, end - len(text), text)
        if piece.over:
            yield encode_event({"offset": piece.end}, kind="end")


@lru_cache(maxsize=8)
def _event(attempt: str, offset: int, text: bytes) -> bytes:
    """Those who follow one log get the same pieces: each is written once."""
    data = {"offset": offset, "text": text.decode(errors="replace")}
    return encode_event(data, id=f"{attempt}:{offset + len(text)}")


def split_incomplete(data: bytes, over: bool) -> tuple[bytes, bytes]:
    """Bytes without the last letter, where more of it may come; and that."""
    if over:
        return data, b""
    for size in range(1, min(4, len(data) + 1)):
        first = data[-size]
        if first >= 0xC0:  # a letter of several bytes begins here
            needs = 2 + (first >= 0xE0) + (first >= 0xF0)
            return (data[:-size], data[-size:]) if needs > size else (data, b"")
        if first < 0x80:
            break
    return data, b""
