"""What the command line asks when CLEW_SERVER is set, and is answered with its own documents.

Resources have routes of their own; these are the methods of `clew.api.Project`, one each, because
a command's words mean something only where they were typed: a path, a file as it is now, a user.
So whoever asks says where it is. They are for the command line and the Python interface of the
same version, and no part of the documented API.
"""

from __future__ import annotations

import inspect
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from clew.api.local.checkouts import describe_checkout, kept_digests
from clew.api.local.notes import note as add_note
from clew.api.local.project import LocalProject
from clew.api.local.recreate import ClientFiles, Recreation
from clew.api.local.share import LocalEndpoint
from clew.api.local.versions import check_stored, find, find_stored
from clew.api.remote.client_paths import ClientPaths
from clew.errors import NoContent, NotFound
from clew.prov.export.notes import PortableNote
from clew.prov.queries.files import list_versions
from clew.prov.queries.lineage.lineage import trace_lineage as lineage_of
from clew.prov.queries.targets import Target
from clew.server.parsing.event_batches import Malformed
from clew.server.service import Service
from clew.store import Store

router = APIRouter(prefix="/api/v1/commands", include_in_schema=False)

Document = dict[str, Any]
_QUESTIONS: dict[str, tuple[type[msgspec.Struct], Callable[..., Any]]] = {}


def parse_request(raw: bytes, kind: type[msgspec.Struct]) -> Any:
    """What was asked, as far as it is what this question takes."""
    try:
        return msgspec.convert(json.loads(raw or b"{}"), type=kind, str_keys=True)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"this cannot be asked: {error}") from error


def json_response(document: object) -> Response:
    """A document, also where a text in it is none that UTF-8 can hold."""
    return Response(json.dumps(document), media_type="application/json")


def _question(function: Callable[..., Any]) -> Callable[..., Any]:
    """A question that a project is asked by the function's name, with its parameters as words."""
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    fields = [
        (one.name, one.annotation)
        if one.default is inspect.Parameter.empty
        else (one.name, one.annotation, one.default)
        for one in parameters
    ]
    kind = msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)
    _QUESTIONS[function.__name__] = (kind, function)
    return function


@router.post("/ask/{name}")
async def ask(request: Request, name: str) -> Response:
    if name not in _QUESTIONS:
        raise NotFound(f"no command asks {name[:100]!r}", hint="is it a newer Clew that asks?")
    kind, function = _QUESTIONS[name]
    asked = parse_request(await request.body(), kind)
    service: Service = request.app.state.service

    def work() -> Response:
        with service.project() as project:
            return json_response(function(project, **msgspec.structs.asdict(asked)))

    return await run_in_threadpool(work)


@_question
def about(project: LocalProject) -> Document:
    return {"root": str(project.root), "uid": project.uid}


@_question
def executions(project: LocalProject) -> list[Document]:
    return [execution.as_json() for execution in project.executions()]


@_question
def execution(project: LocalProject, id: str) -> Document:  # noqa: A002
    return project.execution(id).as_json()


@_question
def show(project: LocalProject, id: str, detail: bool = False) -> Document:  # noqa: A002
    return project.show(id, detail=detail)


@_question
def lineage(
    project: LocalProject,
    target: str,
    asker: ClientPaths,
    direction: str = "up",
    depth: int | None = None,
    everything: bool = False,
) -> Document:
    found = find(project, target, asker.here())
    return lineage_of(project.graph, found, direction=direction, depth=depth, everything=everything)


@_question
def versions(project: LocalProject, locator: str) -> list[Document]:
    return list_versions(project.graph, locator)


@_question
def version(project: LocalProject, target: str, asker: ClientPaths) -> Document:
    """A version whose bytes are stored, by what it takes to write it elsewhere."""
    found = find_stored(project, target, asker.here())
    with Store(project.directory.store) as store:
        check_stored(store, found)
        return _written(store, found)


def _written(store: Store, found: Target) -> Document:
    assert found.digest is not None
    size = store.size(found.digest) if found.size is None else found.size
    names = ("kind", "label", "locator", "digest", "mode", "mtime", "stored", "execution")
    return {**{name: getattr(found, name) for name in names}, "size": size}


@_question
def recreatable(
    project: LocalProject,
    target: str,
    asker: ClientPaths,
    brought: dict[str, str],
    network: bool,
    secrets: dict[str, str],
    gpu: bool = False,
) -> Document:
    """How a version can be made again; where it cannot, why, and what of the asker's would help."""
    elsewhere = ClientFiles(asker.here(), brought)
    values = project.secrets.only_given(secrets)
    with Store(project.directory.store) as store:
        try:
            way = Recreation(
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
        found = {"target": _written(store, way.target), "way": way.as_json()}
        return {**found, "sought": elsewhere.sought}


@_question
def has(project: LocalProject, digest: str) -> bool:
    with Store(project.directory.store) as store:
        return store.has(digest)


@_question
def checkout(project: LocalProject, id: str) -> Document:  # noqa: A002
    """What a checkout holds, to be laid out elsewhere."""
    found = describe_checkout(project, id)
    return {**found._asdict(), "files": [kept.as_json() for kept in found.files]}


@_question
def kept(project: LocalProject, execution: str, digests: set[str]) -> list[str]:
    return sorted(kept_digests(project, execution, digests))


@_question
def handed_over(project: LocalProject, id: str) -> Document:  # noqa: A002
    """What is told of an execution beside its events and contents."""
    own = LocalEndpoint(project)
    return {"source": own.source(id), "remarks": msgspec.to_builtins(own.remarks(id))}


@_question
def contents(project: LocalProject, id: str) -> list[str]:  # noqa: A002
    return sorted(LocalEndpoint(project).contents(id))


@_question
def take_remarks(project: LocalProject, id: str, remarks: list[PortableNote]) -> None:  # noqa: A002
    LocalEndpoint(project).note(project.execution(id).uid, remarks)


@_question
def diff(project: LocalProject, a: str, b: str) -> Document:
    return project.diff(a, b)


@_question
def rules(project: LocalProject) -> list[Document]:
    return project.rules()


@_question
def note(
    project: LocalProject, target: str, asker: ClientPaths, remarks: dict[str, str]
) -> list[Document]:
    return add_note(project, target, remarks, asker.here(), asker.agent)


@_question
def report(project: LocalProject, id: str, kind: str) -> str:  # noqa: A002
    return project.report(id, kind)


@_question
def remove(project: LocalProject, ids: list[str], dry_run: bool = False) -> list[Document]:
    return [execution.as_json() for execution in project.remove(ids, dry_run=dry_run)]


@_question
def gc(project: LocalProject, dry_run: bool = False) -> Document:
    return project.gc(dry_run=dry_run).as_json()


@_question
def fsck(project: LocalProject) -> Document:
    return project.fsck().as_json()


@_question
def runs(project: LocalProject) -> list[Document]:
    return project.pipelines.list()


@_question
def run(project: LocalProject, id: str) -> Document:  # noqa: A002
    return project.pipelines.show(id)


@_question
def task(project: LocalProject, id: str) -> Document:  # noqa: A002
    return project.pipelines.task(id)


@_question
def why(project: LocalProject, id: str) -> Document:  # noqa: A002
    return project.pipelines.why(id)


@_question
def diff_runs(project: LocalProject, a: str, b: str) -> Document:
    return project.pipelines.diff(a, b)


@_question
def said(project: LocalProject, id: str, offset: int = 0) -> Document:  # noqa: A002
    found = project.pipelines.said(id, offset)
    return {**found._asdict(), "data": b64encode(found.data).decode()}
