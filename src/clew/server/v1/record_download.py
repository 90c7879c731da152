"""Downloads of records, in the formats that ingest accepts: events, and content as packs of chunks.

A client asks which chunks some contents consist of, then for the chunks that it lacks. A response
is one pack; until the client has read it, it counts towards the limit of concurrent ingest
requests. Contents, and so the lists of their chunks, are given to callers who may read a namespace
that has them.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated, Any

import msgspec
from fastapi import Body, Header, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from clew.api.local.remotes.push_pull import LocalEndpoint
from clew.documents.executions.push_pull import RecordParts
from clew.documents.ids import Digest, Uid
from clew.prov.events import to_batch, to_lines
from clew.prov.export.note_transfer import PortableNote
from clew.prov.export.recorded_events import export_events
from clew.prov.queries.cluster.visibility import check_content
from clew.prov.queries.executions import find_execution
from clew.server.identity.namespace_access import namespaces_of
from clew.server.ingest_transfers import IngestTransfers
from clew.server.parsers.event_batches import Malformed
from clew.server.server_state import Service
from clew.server.v1.dependencies import ProjectDep
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.ingest import INGEST_RESPONSES, Digests, parse_digests
from clew.server.v1.records.executions import Id
from clew.store import Store
from clew.store.types import format_digest

router = DocumentRouter(prefix="/api/v1", tags=["giving"], responses=INGEST_RESPONSES)

_NOTES = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "array", "items": {"type": "object"}}}},
    }
}
_LINES = "application/x-ndjson"
_PACKED = "application/msgpack"
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_PACK: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": _BYTES}}}


class _SlotResponse(Response):
    """A response that holds its ingest slot until the client has read it."""

    media_type = "application/octet-stream"

    def __init__(self, content: bytes, slot: ExitStack) -> None:
        super().__init__(content)
        self._slot = slot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._slot:
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
    """All events of an execution, as `POST events` accepts them: lines of JSON, or MessagePack if
    the client accepts that."""
    events = export_events(project.graph, find_execution(project.graph, id))
    if _PACKED in accept:
        return Response(to_batch(events), media_type=_PACKED)
    return Response(b"".join(to_lines(events)), media_type=_LINES)


@router.get("/executions/{id}/record")
def get_record_parts(project: ProjectDep, id: Id) -> RecordParts:  # noqa: A002
    """The parts of a record besides its events."""
    uid = find_execution(project.graph, id).uid
    endpoint = LocalEndpoint(project)
    source = endpoint.source(uid)
    return RecordParts(
        source=None if source is None else Uid(source),
        notes=tuple(map(msgspec.to_builtins, endpoint.remarks(uid))),
        contents=tuple(map(Digest, sorted(endpoint.contents(uid)))),
    )


@router.post("/executions/{id}/notes", status_code=204, openapi_extra=_NOTES)
def post_notes(project: ProjectDep, id: Id, body: Annotated[Any, Body()]) -> None:  # noqa: A002
    """Add notes that came with an execution, in the form that `record` has them. Those about
    anything else are ignored."""
    try:
        notes = msgspec.convert(body, list[PortableNote])
    except msgspec.ValidationError as error:
        raise Malformed(f"these are not notes: {error}") from error
    LocalEndpoint(project).import_notes(find_execution(project.graph, id).uid, notes)


@router.post("/content/records", response_class=Response, responses=_PACK)
async def post_records(request: Request, digests: Digests) -> Response:
    """A pack of records that list the chunks of these contents. A content without a record is a
    single chunk."""
    contents = parse_digests(digests.contents)
    return await _respond_with_pack(
        request, contents, lambda store: store.pack_export().records(contents)
    )


@router.post("/content/chunks", response_class=Response, responses=_PACK)
async def post_chunks(request: Request, digests: Digests) -> Response:
    """A pack of as many of these chunks as fit, at least one. `contents`: those that are single
    chunks."""
    chunks, alone = parse_digests(digests.chunks), parse_digests(digests.contents)
    return await _respond_with_pack(
        request, [*chunks, *alone], lambda store: store.pack_export().chunks(chunks, alone=alone)
    )


async def _respond_with_pack(
    request: Request, digests: list[bytes], make_pack: Callable[[Store], bytes]
) -> Response:
    """`digests`: what the pack is about."""
    transfers: IngestTransfers = request.app.state.intake
    service: Service = request.app.state.service

    def work() -> bytes:
        with service.project(namespaces_of(service, request)) as project:
            for digest in set(digests):
                check_content(project.graph, format_digest(digest))
        with Store(service.directory.store) as store:
            return make_pack(store)

    with ExitStack() as slot:
        slot.enter_context(transfers.slot())
        return _SlotResponse(await run_in_threadpool(work), slot.pop_all())
