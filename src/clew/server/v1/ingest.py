"""Ingest: events in batches, and the content they name, as far as it is missing here.

A batch is read whole before anything is folded, and folded in one transaction, with the bytes it
names leased: so it is here whole or not at all, whenever either side is killed. The fold is a
union of facts: a batch that comes twice changes nothing.
"""

from __future__ import annotations

from typing import Annotated, Any

import blake3
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from clew.errors import ClewError, UsageError
from clew.prov.events import AnyEvent
from clew.prov.export.recorded_events import stored_digests
from clew.prov.queries.executions import get_execution
from clew.server.http.cancellation import Check, run_cancellable
from clew.server.ingest_limits import IngestTransfers
from clew.server.parsing import event_batches
from clew.server.service import Service
from clew.server.v1.dependencies import PROBLEM_RESPONSES
from clew.store.types import digest_of, named

MAX_PACK_BYTES = 80 << 20
"""Bytes of a pack, or of a content that comes by itself."""
MAX_DIGESTS = 20_000
"""Digests in one question."""

_SAID = {
    409: "Events name content that is not here.",
    415: "Neither lines of JSON nor MessagePack.",
    429: "Too much is under way; Retry-After says when to come again.",
}
INGEST_RESPONSES = PROBLEM_RESPONSES | {
    status: {**PROBLEM_RESPONSES[400], "description": s} for status, s in _SAID.items()
}

router = APIRouter(prefix="/api/v1", tags=["ingest"], responses=INGEST_RESPONSES)

Transfer = Annotated[
    str,
    Query(
        alias="for",
        max_length=100,
        description="The transfer that this belongs to, by any name: content that was sent for it"
        " is kept until its events are here.",
    ),
]


class MissingContent(ClewError):
    code = "missing-content"
    http_status = 409


class IngestedExecution(BaseModel):
    """One execution that a batch spoke of."""

    uid: str
    id: str
    name: str | None


class IngestResult(BaseModel):
    """What became of a batch."""

    events: int
    executions: list[IngestedExecution]


class Digests(BaseModel):
    """Contents (whole files) and chunks (parts of them), by name: `blake3:` and 64 digits."""

    contents: list[str] = Field(default=[], max_length=MAX_DIGESTS)
    chunks: list[str] = Field(default=[], max_length=MAX_DIGESTS)


class StoredBytes(BaseModel):
    bytes: int


def _body(*kinds: str) -> dict[str, Any]:
    """How OpenAPI tells of a body that the route reads by itself."""
    schema = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, schema)}}


@router.post("/events", openapi_extra=_body("application/x-ndjson", "application/msgpack"))
async def post_events(request: Request, transfer: Transfer = "") -> IngestResult:
    """Fold a batch of events. `Content-Encoding` may be zstd or gzip. Whatever content they say
    is stored must be here already, else 409."""
    intake = _intake(request)
    with intake.slot():
        body = await _read(request, event_batches.MAX_BATCH_BYTES)
        coding = request.headers.get("content-encoding", "").strip().lower()
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()

        def work(check: Check) -> IngestResult:
            events = event_batches.parse_batch(event_batches.decompress(body, coding), kind, check)
            check()
            folded = _fold(request.app.state.service, intake, events, transfer)
            request.app.state.metrics.events.inc(folded.events)
            return folded

        return await run_cancellable(request, work)


@router.post("/content/missing")
async def find_missing(request: Request, asked: Digests, transfer: Transfer = "") -> Digests:
    """Which of these are not here. What is here is kept for the transfer."""
    intake = _intake(request)

    def work() -> Digests:
        contents, chunks = map(parse_digests, (asked.contents, asked.chunks))
        with intake.taking(transfer) as taking:
            missing, lacking = taking.missing(contents), taking.lacking(chunks)
        return Digests(contents=list(map(named, missing)), chunks=list(map(named, lacking)))

    with intake.slot():
        return await run_in_threadpool(work)


@router.post("/content", openapi_extra=_body("application/octet-stream"))
async def post_content(request: Request, transfer: Transfer = "") -> StoredBytes:
    """Store the chunks and records of a pack (docs/formats/store.md), each checked against its
    digest. When this answers, they are stored for good."""
    intake = _intake(request)
    with intake.slot():
        pack = await _read(request, MAX_PACK_BYTES)

        def work(check: Check) -> StoredBytes:
            with intake.taking(transfer) as taking:
                taking.take(pack, check)
            request.app.state.metrics.bytes.inc(len(pack))
            return StoredBytes(bytes=len(pack))

        return await run_cancellable(request, work)


@router.put("/content/{digest}", openapi_extra=_body("application/octet-stream"))
async def put_content(request: Request, digest: str, transfer: Transfer = "") -> StoredBytes:
    """Store one content as it is: the simple way, for whoever has few and small ones."""
    intake = _intake(request)
    with intake.slot():
        data = await _read(request, MAX_PACK_BYTES)

        def work() -> StoredBytes:
            if blake3.blake3(data).digest() != parse_digests([digest])[0]:
                raise UsageError(f"what was sent does not have the digest {digest}")
            with intake.taking(transfer) as taking:
                taking.put(data)
            request.app.state.metrics.bytes.inc(len(data))
            return StoredBytes(bytes=len(data))

        return await run_in_threadpool(work)


def _fold(
    service: Service, intake: IngestTransfers, events: list[AnyEvent], transfer: str
) -> IngestResult:
    wanted = sorted(stored_digests(events))
    with intake.taking(transfer) as taking, service.project() as project:
        known = [digest_of(name) for name in wanted]
        missing = [name for name, digest in zip(wanted, known, strict=True) if digest is None]
        missing += map(named, taking.missing(digest for digest in known if digest is not None))
        if missing:
            raise MissingContent(
                f"what the batch names is not all here: {missing[0]} is one of {len(missing)}",
                hint="send them to /api/v1/content, or say that they are not stored",
            )
        try:
            project.graph.import_events(events)
        except (ClewError, OverflowError, ValueError) as error:
            raise event_batches.find_unstorable(events) or error from error
        found = [
            get_execution(project.graph, uid, alive=lambda _: False)
            for uid in dict.fromkeys(event.execution for event in events)
        ]
    intake.end(transfer)
    taken = [IngestedExecution(uid=one["uid"], id=one["id"], name=one["name"]) for one in found]
    return IngestResult(events=len(events), executions=taken)


def _intake(request: Request) -> IngestTransfers:
    intake: IngestTransfers = request.app.state.intake
    return intake


async def _read(request: Request, most: int) -> bytes:
    """The body, if it is not too large: that is seen before, or at the latest when it is."""
    too_large = event_batches.TooLarge(f"a body may have {most} bytes", hint="send it in parts")
    if int(request.headers.get("content-length") or 0) > most:
        raise too_large
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                raise too_large
    except ClientDisconnect as error:
        raise UsageError("the body was not sent to its end") from error
    return bytes(body)


def parse_digests(names: list[str]) -> list[bytes]:
    found = []
    for name in names:
        digest = digest_of(name)
        if digest is None:
            raise UsageError(f"{name[:80]} is no digest", hint="blake3: and 64 hexadecimal digits")
        found.append(digest)
    return found
