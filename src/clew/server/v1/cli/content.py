"""The content of a version that the client names, also by a path of its own machine.

The response is one line of JSON with the digest, then the bytes.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from clew.api.local.versions import check_stored, find_stored
from clew.api.remote.messages import ContentRequest
from clew.documents.ids import Digest
from clew.server.identity.namespace_access import namespaces_of
from clew.server.server_state import Service
from clew.server.v1.cli.queries import parse_request
from clew.store import Store

router = APIRouter(prefix="/api/v1/commands", include_in_schema=False)


@router.post("/content")
async def content(request: Request) -> Response:
    """The content of a version."""
    command: ContentRequest = parse_request(await request.body(), ContentRequest)
    service: Service = request.app.state.service

    def work() -> Response:
        with service.project(namespaces_of(service, request)) as project:
            version = find_stored(project, command.target, command.asker.here())
        with Store(service.directory.store) as store:
            check_stored(project, store, version)
        assert version.digest is not None
        pieces = _read(service.directory.store, version.digest)
        return StreamingResponse(pieces, media_type="application/octet-stream")

    return await run_in_threadpool(work)


def _read(path: Path, digest: Digest) -> Iterator[bytes]:
    yield json.dumps({"digest": digest}).encode() + b"\n"
    with Store(path) as store:
        yield from store.read(digest)
