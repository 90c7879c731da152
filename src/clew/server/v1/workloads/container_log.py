"""The log of a container: as a file, or as a stream of server-sent events."""

import asyncio
import codecs
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from starlette.concurrency import run_in_threadpool

from clew.errors import ClewError
from clew.kube.backend.log_positions import LogChunk
from clew.server.http.server_sent_events import (
    KEEPALIVE,
    MEDIA_TYPE,
    OPENAPI_CONTENT,
    RETRY,
    encode_event,
    stream_response,
)
from clew.server.polling_feed import KEEPALIVE_SECONDS
from clew.server.server_state import Service
from clew.server.v1.dependencies import BackendDep, Namespace, ServiceDep
from clew.server.v1.workloads.details import WORKLOAD, Collection
from clew.workloads.details import key_for
from clew.workloads.log_stream import check_log, follow_log, read_log

router = APIRouter(tags=["workloads"])

_LOOK_SECONDS = 0.5
"""How soon a quiet stream ends when the server does."""
_MAX_CHUNK = 64 << 10


@router.get(
    f"{WORKLOAD}/containers/{{container}}/log",
    response_class=Response,
    responses={
        200: {
            "description": "The log as a file; or, where `Accept` asks for it, events `{text}`, and"
            " `end` when it is stopped or deleted.",
            "content": {"text/plain": {"schema": {"type": "string"}}, **OPENAPI_CONTENT},
        }
    },
)
async def get_container_log(
    service: ServiceDep,
    backend: BackendDep,
    namespace: Namespace,
    collection: Collection,
    name: str,
    container: str,
    tail: Annotated[
        int, Query(ge=0, le=100_000, description="With how many of the last lines a stream begins.")
    ] = 1000,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """The output of a container. A stream continues after restarts, and after a lost connection."""
    key = key_for(collection, namespace, name)
    if MEDIA_TYPE not in accept:
        text = await run_in_threadpool(read_log, backend, key, container)
        headers = {
            "Content-Disposition": f'attachment; filename="{name}.log"',
            "Cache-Control": "no-store",
        }
        return Response(text.encode(), media_type="text/plain; charset=utf-8", headers=headers)
    await run_in_threadpool(check_log, backend, key, container)
    chunks = follow_log(backend, key, container, tail=tail, after=last_event_id)
    return stream_response(_event_stream(service, chunks))


async def _event_stream(service: Service, chunks: AsyncIterator[LogChunk]) -> AsyncIterator[bytes]:
    yield RETRY
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with suppress(ClewError):  # the client connects again, and learns of an error that lasts
        async for chunk in _until_shutdown(service, chunks):
            if chunk is None:
                yield KEEPALIVE
                continue
            text = decoder.decode(chunk.data)
            for start in range(0, len(text), _MAX_CHUNK):
                part, last = text[start : start + _MAX_CHUNK], start + _MAX_CHUNK >= len(text)
                yield encode_event({"text": part}, id=chunk.position if last else None)
        if not service.feeds.ending:
            yield encode_event({}, kind="end")


async def _until_shutdown(
    service: Service, chunks: AsyncIterator[LogChunk]
) -> AsyncIterator[LogChunk | None]:
    """The chunks; None when it is time for a keepalive."""
    waiting: asyncio.Task[LogChunk | None] | None = None
    quiet = 0.0
    try:
        while not service.feeds.ending:
            waiting = waiting or asyncio.create_task(_next(chunks))
            done, _ = await asyncio.wait({waiting}, timeout=_LOOK_SECONDS)
            if done:
                chunk, waiting, quiet = waiting.result(), None, 0.0
                if chunk is None:
                    return
                yield chunk
            else:
                quiet += _LOOK_SECONDS
                if quiet >= KEEPALIVE_SECONDS:
                    quiet = 0.0
                    yield None
    finally:
        if waiting is not None:
            waiting.cancel()
            with suppress(asyncio.CancelledError, ClewError):
                await waiting


async def _next(chunks: AsyncIterator[LogChunk]) -> LogChunk | None:
    return await anext(chunks, None)
