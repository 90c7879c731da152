"""Queries that depend on the client's machine: relative paths, the current content of files, the
user. So clients send their `ClientPaths` along."""

import inspect
import json
from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from clew.api.local.checkouts import describe_checkout, kept_digests
from clew.api.local.notes import note as add_note
from clew.api.local.project import LocalProject
from clew.api.local.recreate import Recreation
from clew.api.local.recreation_sources import ClientFiles
from clew.api.local.versions import check_stored, find, find_stored
from clew.api.remote.caller_paths import ClientPaths
from clew.documents.document import encode
from clew.documents.ids import Uid
from clew.documents.lineage import Direction, Lineage
from clew.documents.notes import Notes
from clew.errors import NoContent, NotFound
from clew.prov.queries.lineage.lineage import trace_lineage as lineage_of
from clew.prov.queries.targets import Target
from clew.server.parsing.event_batches import Malformed
from clew.server.server_state import Service
from clew.store import Store

router = APIRouter(prefix="/api/v1/commands", include_in_schema=False)

Document = dict[str, Any]
_QUERIES: dict[str, tuple[type[msgspec.Struct], Callable[..., Any]]] = {}


def parse_request(raw: bytes, kind: type[msgspec.Struct]) -> Any:
    """Parse the body as a `kind`; anything else is refused."""
    try:
        return msgspec.convert(json.loads(raw or b"{}"), type=kind, str_keys=True)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the request is malformed: {error}") from error


def _query(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a query under the function's name; its parameters are the fields of the request."""
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    fields = [
        (p.name, p.annotation)
        if p.default is inspect.Parameter.empty
        else (p.name, p.annotation, p.default)
        for p in parameters
    ]
    kind = msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)
    _QUERIES[function.__name__] = (kind, function)
    return function


@router.post("/ask/{name}")
async def ask(request: Request, name: str) -> Response:
    if name not in _QUERIES:
        raise NotFound(f"there is no query {name[:100]!r}", hint="is the client a newer Clew?")
    kind, function = _QUERIES[name]
    arguments = parse_request(await request.body(), kind)
    service: Service = request.app.state.service

    def work() -> Response:
        with service.project() as project:
            answer = function(project, **msgspec.structs.asdict(arguments))
            return Response(encode(answer), media_type="application/json")

    return await run_in_threadpool(work)


@_query
def lineage(
    project: LocalProject,
    target: str,
    asker: ClientPaths,
    direction: Direction = "up",
    depth: int | None = None,
    everything: bool = False,
) -> Lineage:
    found = find(project, target, asker.here())
    return lineage_of(project.graph, found, direction=direction, depth=depth, everything=everything)


@_query
def version(project: LocalProject, target: str, asker: ClientPaths) -> Document:
    """A stored version, with the metadata that the client needs to write it."""
    found = find_stored(project, target, asker.here())
    with Store(project.directory.store) as store:
        check_stored(project, store, found)
        return _file_metadata(store, found)


def _file_metadata(store: Store, found: Target) -> Document:
    assert found.digest is not None
    size = store.size(found.digest) if found.size is None else found.size
    names = ("kind", "label", "locator", "digest", "mode", "mtime", "stored", "execution")
    return {**{name: getattr(found, name) for name in names}, "size": size}


@_query
def recreatable(
    project: LocalProject,
    target: str,
    asker: ClientPaths,
    brought: dict[str, str],
    network: bool,
    secrets: dict[str, str],
    gpu: bool = False,
) -> Document:
    """How a version can be recreated; if it cannot, why, and which client files would help."""
    elsewhere = ClientFiles(asker.here(), brought)
    values = project.secrets.only_given(secrets)
    with Store(project.directory.store) as store:
        try:
            recreation = Recreation(
                project,
                store,
                target,
                network=network,
                gpu=gpu,
                elsewhere=elsewhere,
                values=values,
            )
        except NoContent as error:
            return {**error.as_json(), "sought": elsewhere.sought}
        found = {"target": _file_metadata(store, recreation.target), "plan": recreation.describe()}
        return {**found, "sought": elsewhere.sought}


@_query
def checkout(project: LocalProject, id: str) -> Document:  # noqa: A002
    """The files of a checkout, for the client to write."""
    found = describe_checkout(project, id)
    return {**found._asdict(), "files": [kept.as_json() for kept in found.files]}


@_query
def kept(project: LocalProject, execution: str, digests: set[str]) -> list[str]:
    return sorted(kept_digests(project, Uid(execution), digests))


@_query
def note(project: LocalProject, target: str, asker: ClientPaths, remarks: dict[str, str]) -> Notes:
    return Notes(notes=tuple(add_note(project, target, remarks, asker.here(), asker.agent)))
