"""Versions of files: their list, previews and content, with byte ranges."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated
from urllib.parse import quote

from fastapi import Header, Path, Query, Request, Response
from starlette.responses import StreamingResponse

from clew.api.local.recreation.recreate import plan_recreation
from clew.api.local.versions import check_stored, find_stored
from clew.documents.files.recreations import RecreationPlan
from clew.documents.files.versions import Preview, Versions
from clew.documents.ids import Digest, Locator
from clew.errors import UsageError
from clew.prov.queries import files
from clew.prov.queries.formats import path_fields
from clew.prov.queries.targets import Target
from clew.server.http.problems import problem_response
from clew.server.identity.namespace_access import namespaces_of
from clew.server.server_state import Service
from clew.server.v1.dependencies import ProjectDep, ServiceDep, Text
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.records.previews import (
    MAX_TEXT_BYTES,
    bytes_needed,
    make_preview,
)
from clew.store import Store

router = DocumentRouter(tags=["versions"])

Id = Annotated[
    Text,
    Path(
        description="`e2:PATH`, `e2:PATH@3`, `r1/train:model`, `blake3:HEX`.",
        examples=["e1:stdout"],
    ),
]
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_MAX_HTML_BYTES = 32 << 20
_HTML_HEADERS = {
    "Content-Security-Policy": "sandbox allow-scripts; default-src 'none'; form-action 'none';"
    " script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:;"
    " font-src data:; media-src data: blob:; base-uri 'none'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, max-age=0, must-revalidate",
    "X-DNS-Prefetch-Control": "off",
}
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.get("/versions")
def list_versions(
    project: ProjectDep,
    path: Annotated[Text | None, Query(description="A path on the server's machine.")] = None,
    locator: Annotated[
        Text | None, Query(description="A file of any machine: `file://MACHINE/path`.")
    ] = None,
) -> Versions:
    """All recorded versions of the file that `path` or `locator` names, oldest first."""
    if (path is None) == (locator is None):
        raise UsageError("give either a path or a locator", hint="/api/v1/versions?path=…")
    place = Locator(locator or "")
    found = project.versions(path) if path else files.list_versions(project.graph, place)
    return Versions(versions=tuple(found))


@router.get("/versions/{id:path}/preview")
def get_preview(service: ServiceDep, request: Request, id: Id) -> Preview:  # noqa: A002
    with _open(service, request, id) as (target, size, store):
        digest = target.digest
        assert digest is not None
        name = path_fields(target.locator or "")["path"]
        head = b"".join(store.read_part(digest, 0, MAX_TEXT_BYTES))
        needed = bytes_needed(name, head, size)
        if needed > len(head):
            head += b"".join(store.read_part(digest, len(head), needed))
    return make_preview(target.label, digest, name, head, size)


@router.get(
    "/versions/{id:path}/html",
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
def get_html(service: ServiceDep, request: Request, id: Id) -> Response:  # noqa: A002
    """An HTML file, to be shown in a frame of the web app. It is untrusted: it gets an origin that
    is equal to no other, and may load nothing. Its own scripts run, because plots need them."""
    with _open(service, request, id) as (target, size, store):
        if size > _MAX_HTML_BYTES:
            raise UsageError(
                f"the page has more than {_MAX_HTML_BYTES >> 20} MiB", hint="download it instead"
            )
        assert target.digest is not None
        data = b"".join(store.read(target.digest))
    return Response(data, media_type="text/html", headers=_HTML_HEADERS)


@router.get("/versions/{id:path}/recreation")
def get_recreation(project: ProjectDep, id: Id) -> RecreationPlan:  # noqa: A002
    """The executions that would have to run to make this version again."""
    return plan_recreation(project, id)


@router.head("/versions/{id:path}/content", include_in_schema=False)
@router.get(
    "/versions/{id:path}/content",
    response_class=Response,
    responses={
        200: {"content": _BYTES, "description": "All bytes."},
        206: {"content": _BYTES, "description": "The requested bytes."},
        304: {"description": "Not modified."},
        416: {"description": "The range is outside the content."},
    },
)
def get_content(
    service: ServiceDep,
    request: Request,
    id: Id,  # noqa: A002
    range: Annotated[str | None, Header(description="`bytes=0-99`")] = None,  # noqa: A002
    if_none_match: Annotated[str | None, Header()] = None,
    if_range: Annotated[str | None, Header()] = None,
) -> Response:
    """The content of a version. It never changes: its digest is the ETag."""
    with _open(service, request, id) as (target, size, _):
        digest = target.digest or Digest("")
    tag = f'"{digest}"'
    headers = {
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, max-age=0, must-revalidate",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(_name(target), safe='')}",
    }
    if if_none_match and (if_none_match.strip() == "*" or tag in if_none_match):
        return Response(status_code=304, headers=headers)
    byte_range = _parse_range(range, size) if if_range in (None, tag) else None
    if byte_range == (0, 0) and range:
        headers["Content-Range"] = f"bytes */{size}"
        message = f"the content has {size} bytes"
        hint = "request a smaller range"
        return problem_response("", 416, "no-such-bytes", message, hint=hint, headers=headers)
    start, stop = byte_range or (0, size)
    headers["Content-Length"] = str(stop - start)
    if byte_range:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return StreamingResponse(
        _read(service, digest, start, stop, size),
        status_code=206 if byte_range else 200,
        media_type="application/octet-stream",
        headers=headers,
    )


def _read(service: Service, digest: Digest, start: int, stop: int, size: int) -> Iterator[bytes]:
    """Read in pieces, so that a slow client costs only an open file or two."""
    with Store(service.directory.store) as store:
        if (start, stop) == (0, size):
            yield from store.read(digest)
        else:
            yield from store.read_part(digest, start, stop)


def _parse_range(text: str | None, size: int) -> tuple[int, int] | None:
    """The start and end of a range. None: everything, also if the header is not understood, as RFC
    9110 demands; (0, 0): the range is outside the content."""
    match = _RANGE.fullmatch(text.strip()) if text else None
    if match is None or match[0] == "bytes=-":
        return None
    if not match[1]:
        last = min(int(match[2]), size)
        return (size - last, size) if last else (0, 0)
    start, stop = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
    if match[2] and int(match[2]) < start:
        return None
    return (start, stop) if start < stop else (0, 0)


@contextmanager
def _open(service: Service, request: Request, text: str) -> Iterator[tuple[Target, int, Store]]:
    """The version that `text` names, its size, and the open store. NotAllowed if the caller may
    not read the namespaces that have it."""
    with service.project(namespaces_of(service, request)) as project:
        target = find_stored(project, text)
    assert target.digest is not None
    with Store(service.directory.store) as store:
        check_stored(project, store, target)
        yield target, store.size(target.digest), store


def _name(target: Target) -> str:
    path = path_fields(target.locator or "")["path"]
    return path.rsplit("/", 1)[-1] or "content"
