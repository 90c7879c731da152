"""Ingest: batches of events, and the content they refer to that the server lacks.

A batch is read completely, then stored in one transaction, while its content is leased. So it is
stored completely or not at all, whenever either side is killed. Ingest is idempotent: a batch that
arrives twice changes nothing.
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import blake3
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from clew.api.local.project import LocalProject
from clew.documents.ids import Uid
from clew.errors import ClewError, UsageError
from clew.prov.events import AnyEvent
from clew.prov.export.recorded_events import list_stored_digests
from clew.prov.queries.executions import get_execution
from clew.server.http.cancellation import Check, run_cancellable
from clew.server.ingest_transfers import IngestTransfers
from clew.server.parsers import event_batches
from clew.server.server_state import Service
from clew.server.v1.dependencies import PROBLEM_RESPONSES
from clew.store.remotes.pack_transfer import PackImport
from clew.store.types import format_digest, parse_digest

MAX_PACK_BYTES = 80 << 20
"""The largest pack, and the largest content sent by itself."""
MAX_DIGESTS = 20_000
"""Digests in one request."""

_DESCRIPTIONS = {
    409: "The events refer to content that is not stored.",
    415: "The body is neither lines of JSON nor MessagePack.",
    429: "There are too many requests; Retry-After says when to try again.",
}
INGEST_RESPONSES = PROBLEM_RESPONSES | {
    status: {**PROBLEM_RESPONSES[400], "description": s} for status, s in _DESCRIPTIONS.items()
}

_Result = TypeVar("_Result")

router = APIRouter(prefix="/api/v1", tags=["ingest"], responses=INGEST_RESPONSES)

Transfer = Annotated[
    str,
    Query(
        alias="for",
        max_length=100,
        description="Any name for the transfer that this request belongs to: its content is kept"
        " until its events arrive.",
    ),
]


class MissingContent(ClewError):
    code = "missing-content"
    http_status = 409


class IngestedExecution(BaseModel):
    """An execution that a batch contains."""

    uid: Uid
    id: str
    name: str | None


class IngestResult(BaseModel):
    """The result of a batch."""

    events: int
    executions: list[IngestedExecution]


class ObservationsResult(BaseModel):
    """The result of a batch of observations."""

    events: int


class Digests(BaseModel):
    """Digests of contents (whole files) and of chunks (parts of them): `blake3:` and 64 digits."""

    contents: list[str] = Field(default=[], max_length=MAX_DIGESTS)
    chunks: list[str] = Field(default=[], max_length=MAX_DIGESTS)


class StoredBytes(BaseModel):
    bytes: int


def _body(*kinds: str) -> dict[str, Any]:
    """The OpenAPI description of a body that the route itself reads."""
    schema = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, schema)}}


@router.post("/events", openapi_extra=_body("application/x-ndjson", "application/msgpack"))
async def post_events(request: Request, transfer: Transfer = "") -> IngestResult:
    """Store a batch of events. `Content-Encoding` may be zstd or gzip. All content that the events
    refer to as stored must be here already, else 409."""

    def store(project: LocalProject, events: list[AnyEvent]) -> IngestResult:
        project.graph.import_events(events)
        executions = [
            get_execution(project.graph, uid, alive=lambda _: False)
            for uid in dict.fromkeys(event.execution for event in events)
        ]
        ingested = [IngestedExecution(uid=e.uid, id=e.id or "", name=e.name) for e in executions]
        return IngestResult(events=len(events), executions=ingested)

    return await _store_batch(request, transfer, store)


@router.post("/observations", openapi_extra=_body("application/x-ndjson", "application/msgpack"))
async def post_observations(request: Request, transfer: Transfer = "") -> ObservationsResult:
    """Store what an agent of a cluster observed, as `/events` does: executions of the kinds `pod`,
    `claim`, `controller`, `request` and `node`, and the containers of Pods."""

    def store(project: LocalProject, events: list[AnyEvent]) -> ObservationsResult:
        project.graph.import_observations(events)
        return ObservationsResult(events=len(events))

    return await _store_batch(request, transfer, store)


@router.post("/content/missing")
async def find_missing(request: Request, digests: Digests, transfer: Transfer = "") -> Digests:
    """Find the contents and chunks that the server lacks. Those it has are kept for the
    transfer."""
    transfers = _transfers(request)

    def work() -> Digests:
        contents, chunks = map(parse_digests, (digests.contents, digests.chunks))
        with transfers.receive(transfer) as pack_import:
            missing, lacking = (
                pack_import.missing_contents(contents),
                pack_import.missing_chunks(chunks),
            )
        return Digests(
            contents=list(map(format_digest, missing)), chunks=list(map(format_digest, lacking))
        )

    with transfers.slot():
        return await run_in_threadpool(work)


@router.post("/content", openapi_extra=_body("application/octet-stream"))
async def post_content(request: Request, transfer: Transfer = "") -> StoredBytes:
    """Store the chunks and records of a pack (docs/formats/store.md), each checked against its
    digest. They are durable when this returns."""
    transfers = _transfers(request)
    with transfers.slot():
        pack = await _read_body(request, MAX_PACK_BYTES)

        def work(check: Check) -> StoredBytes:
            with transfers.receive(transfer) as pack_import:
                pack_import.import_pack(pack, check)
            request.app.state.metrics.bytes.inc(len(pack))
            return StoredBytes(bytes=len(pack))

        return await run_cancellable(request, work)


@router.put("/content/{digest}", openapi_extra=_body("application/octet-stream"))
async def put_content(request: Request, digest: str, transfer: Transfer = "") -> StoredBytes:
    """Store a single content: simpler than packs, for few and small ones."""
    transfers = _transfers(request)
    with transfers.slot():
        data = await _read_body(request, MAX_PACK_BYTES)

        def work() -> StoredBytes:
            if blake3.blake3(data).digest() != parse_digests([digest])[0]:
                raise UsageError(f"the body does not have the digest {digest}")
            with transfers.receive(transfer) as pack_import:
                pack_import.put(data)
            request.app.state.metrics.bytes.inc(len(data))
            return StoredBytes(bytes=len(data))

        return await run_in_threadpool(work)


async def _store_batch(
    request: Request, transfer: str, store: Callable[[LocalProject, list[AnyEvent]], _Result]
) -> _Result:
    """Read the batch, and store it with `store` once all its content is here."""
    transfers = _transfers(request)
    with transfers.slot():
        body = await _read_body(request, event_batches.MAX_BATCH_BYTES)
        coding = request.headers.get("content-encoding", "").strip().lower()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()

        def work(check: Check) -> _Result:
            events = event_batches.parse_batch(event_batches.decompress(body, coding), kind, check)
            check()
            service: Service = request.app.state.service
            with transfers.receive(transfer) as pack_import, service.project() as project:
                _check_content(pack_import, events)
                try:
                    result = store(project, events)
                except (ClewError, OverflowError, ValueError) as error:
                    raise event_batches.find_unstorable(events) or error from error
            transfers.end(transfer)
            request.app.state.metrics.events.inc(len(events))
            return result

        return await run_cancellable(request, work)


def _check_content(pack_import: PackImport, events: list[AnyEvent]) -> None:
    names = sorted(list_stored_digests(events))
    digests = [parse_digest(name) for name in names]
    missing = [name for name, digest in zip(names, digests, strict=True) if digest is None]
    missing += map(
        format_digest,
        pack_import.missing_contents(digest for digest in digests if digest is not None),
    )
    if missing:
        raise MissingContent(
            f"{len(missing)} contents of the batch are missing, such as {missing[0]}",
            hint="send them to /api/v1/content, or mark them as not stored",
        )


def _transfers(request: Request) -> IngestTransfers:
    transfers: IngestTransfers = request.app.state.intake
    return transfers


async def _read_body(request: Request, limit: int) -> bytes:
    """The body; refused as soon as it is known to be too large."""
    too_large = event_batches.TooLarge(
        f"the body is larger than {limit} bytes", hint="send it in parts"
    )
    if int(request.headers.get("content-length") or 0) > limit:
        raise too_large
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > limit:
                raise too_large
    except ClientDisconnect as error:
        raise UsageError("the client disconnected") from error
    return bytes(body)


def parse_digests(names: list[str]) -> list[bytes]:
    digests = []
    for name in names:
        digest = parse_digest(name)
        if digest is None:
            raise UsageError(
                f"{name[:80]} is not a digest", hint="blake3: and 64 hexadecimal digits"
            )
        digests.append(digest)
    return digests
