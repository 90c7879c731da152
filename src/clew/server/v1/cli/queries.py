"""Queries that depend on the client's machine: relative paths, the current content of files, the
user. So clients send their `ClientPaths` along."""

import inspect
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from clew.api.local.checkouts import describe_checkout, find_kept_digests
from clew.api.local.notes import note as add_note
from clew.api.local.pod_record import find_pod_ancestry, find_pod_facets
from clew.api.local.project import LocalProject
from clew.api.local.recreation.content_sources import ClientFiles
from clew.api.local.recreation.recreate import Recreation
from clew.api.local.versions import as_of_nanoseconds, check_stored, find, find_stored
from clew.api.remote.caller_paths import ClientPaths
from clew.api.remote.messages import (
    CheckoutFile,
    CheckoutListing,
    Problem,
    Recreatable,
    StoredVersion,
)
from clew.documents.document import encode
from clew.documents.ids import Uid
from clew.documents.lineage.lineage import Direction, Lineage
from clew.documents.project.notes import Notes
from clew.errors import NoContent, NotFound
from clew.prov.cluster.ancestry_types import Ancestry
from clew.prov.cluster.facets import PodFacet
from clew.prov.queries.cluster.pod_diff import load_hardware
from clew.prov.queries.lineage.lineage import trace_lineage as lineage_of
from clew.prov.queries.targets import Target
from clew.server.identity.namespace_access import namespaces_of
from clew.server.parsers.event_batches import Malformed
from clew.server.server_state import Service
from clew.store import Store

router = APIRouter(prefix="/api/v1/commands", include_in_schema=False)

_QUERIES: dict[str, tuple[type[msgspec.Struct], Callable[..., Any]]] = {}


def parse_request(raw: bytes, kind: Any) -> Any:
    """Parse the body as a `kind`, a struct or a union of structs; anything else is refused."""
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
        with service.project(namespaces_of(service, request)) as project:
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
    as_of: datetime | None = None,
) -> Lineage:
    found = find(project, target, asker.here(), as_of=as_of)
    return lineage_of(
        project.graph,
        found,
        direction=direction,
        depth=depth,
        everything=everything,
        as_of=as_of_nanoseconds(as_of),
    )


@_query
def version(project: LocalProject, target: str, asker: ClientPaths) -> StoredVersion:
    """A stored version, with the metadata that the client needs to write it."""
    found = find_stored(project, target, asker.here())
    with Store(project.directory.store) as store:
        check_stored(project, store, found)
        return _describe_version(store, found)


def _describe_version(store: Store, found: Target) -> StoredVersion:
    assert found.digest is not None
    return StoredVersion(
        kind=found.kind,
        label=found.label,
        locator=found.locator,
        digest=found.digest,
        size=store.size(found.digest) if found.size is None else found.size,
        mode=found.mode,
        mtime=found.mtime,
        stored=found.stored,
        execution=found.execution,
    )


@_query
def recreatable(
    project: LocalProject,
    target: str,
    asker: ClientPaths,
    brought: dict[str, str],
    network: bool,
    secrets: dict[str, str],
    gpu: bool = False,
) -> Recreatable:
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
            problem = Problem(code=error.code, message=error.message, hint=error.hint)
            return Recreatable(sought=elsewhere.sought, error=problem)
        return Recreatable(
            sought=elsewhere.sought,
            target=_describe_version(store, recreation.target),
            plan=recreation.describe(),
        )


@_query
def checkout(project: LocalProject, id: str) -> CheckoutListing:  # noqa: A002
    """The files of a checkout, for the client to write."""
    found = describe_checkout(project, id)
    files = [CheckoutFile.of(kept) for kept in found.files]
    return CheckoutListing(**{**found._asdict(), "files": files})


@_query
def kept(project: LocalProject, execution: str, digests: set[str]) -> list[str]:
    return sorted(find_kept_digests(project, Uid(execution), digests))


@_query
def note(project: LocalProject, target: str, asker: ClientPaths, remarks: dict[str, str]) -> Notes:
    return Notes(notes=tuple(add_note(project, target, remarks, asker.here(), asker.agent)))


@_query
def ancestry(project: LocalProject, target: str, as_of: int | None = None) -> Ancestry:
    """The Pods that a target depends on, for the plan of a reproduction."""
    return find_pod_ancestry(project.graph, target, as_of)


@_query
def pod_facets(project: LocalProject, uids: list[Uid]) -> dict[Uid, PodFacet]:
    return find_pod_facets(project.graph, uids)


@_query
def node_hardware(
    project: LocalProject, node: str | None = None, at: int | None = None
) -> dict[str, Any]:
    return load_hardware(project.graph, node, at=at)
