"""What ingest takes, given: the events of an execution, and content by missing chunk.

Whoever wants contents asks what chunks they are made of, then for the chunks that it lacks. An
answer is one pack; it counts among those that ingest may hold at once until it is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from clew.prov.events import to_batch, to_lines
from clew.prov.export.recorded_events import export_events
from clew.prov.queries.executions import find_execution
from clew.server.ingest_limits import IngestTransfers
from clew.server.v1.dependencies import ProjectDep
from clew.server.v1.executions import Id
from clew.server.v1.ingest import INGEST_RESPONSES, Digests, parse_digests
from clew.store import Store

router = APIRouter(prefix="/api/v1", tags=["giving"], responses=INGEST_RESPONSES)

_LINES = "application/x-ndjson"
_PACKED = "application/msgpack"
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_PACK: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": _BYTES}}}


class _Held(Response):
    """An answer that keeps its place among those under way until it is taken."""

    media_type = "application/octet-stream"

    def __init__(self, content: bytes, place: ExitStack) -> None:
        super().__init__(content)
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            await super().__call__(scope, receive, send)


@router.get(
    "/executions/{id}/events",
    response_class=Response,
    responses={200: {"content": {_LINES: _BYTES, _PACKED: _BYTES}}},
)
def get_events(
    project: ProjectDep,
    id: Id,  # noqa: A002
    accept: Annotated[str, Header(max_length=1000)] = "",
) -> Response:
    """All events of an execution, as `POST events` takes them: lines of JSON, or MessagePack if
    that is accepted."""
    events = export_events(project.graph, find_execution(project.graph, id))
    if _PACKED in accept:
        return Response(to_batch(events), media_type=_PACKED)
    return Response(b"".join(to_lines(events)), media_type=_LINES)


@router.post("/content/records", response_class=Response, responses=_PACK)
async def post_records(request: Request, asked: Digests) -> Response:
    """A pack that tells what chunks these contents are made of. One that is not told of is a
    chunk by itself."""
    return await _given(
        request, lambda store: store.giving().records(parse_digests(asked.contents))
    )


@router.post("/content/chunks", response_class=Response, responses=_PACK)
async def post_chunks(request: Request, asked: Digests) -> Response:
    """A pack of as many of these as fit, and of at least one. `contents` are those that are chunks
    by themselves."""
    return await _given(
        request,
        lambda store: store.giving().chunks(
            parse_digests(asked.chunks), alone=parse_digests(asked.contents)
        ),
    )


async def _given(request: Request, give: Callable[[Store], bytes]) -> Response:
    intake: IngestTransfers = request.app.state.intake
    path = request.app.state.service.folder.store

    def work() -> bytes:
        with Store(path) as store:
            return give(store)

    with ExitStack() as place:
        place.enter_context(intake.slot())
        return _Held(await run_in_threadpool(work), place.pop_all())
