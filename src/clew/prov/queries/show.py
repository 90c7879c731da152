"""One execution in full: processes, environment, gaps; in detail its files and network peers."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType, structs

from clew.documents.document import from_nanoseconds
from clew.documents.executions import detail as documents
from clew.documents.executions.detail import ExecutionDetail, Gap, Package, Peer, Process
from clew.documents.ids import Locator, ProcessId
from clew.prov.graph import Graph
from clew.prov.locators import path_of
from clew.prov.queries.executions import ExecutionRef, IsRunning, find_execution, get_execution
from clew.prov.queries.files import File, list_devices, list_files
from clew.prov.queries.formats import path_fields, process_id

_TREE = """
SELECT s.id, s.number, s.uid, s.parent, s.pid, s.command, s.exe, s.cwd, s.at,
       e.at, e.status, e.signal
FROM started s LEFT JOIN ended e ON e.activity = s.id
WHERE s.execution = ? AND s.id <> s.execution ORDER BY s.number, s.n, e.n
"""
_FACETS = "SELECT environment, facets FROM started WHERE id = ?"
_LEARNT = "SELECT facets FROM ended WHERE activity = ? ORDER BY n"
_GAPS = """
SELECT g.what, g.why, l.locator, g.activity FROM gap g LEFT JOIN location l ON l.id = g.location
WHERE g.activity = ? OR g.activity IN (SELECT id FROM started WHERE execution = ?) ORDER BY g.n
"""
_PEERS = """
SELECT DISTINCT l.locator, u.activity FROM version v JOIN location l ON l.id = v.location
JOIN used u ON u.version = v.id
WHERE v.execution = ? AND l.locator NOT LIKE 'file:' || ? ORDER BY 1, 2
"""
_UNSTORED = """
SELECT DISTINCT l.locator FROM version v JOIN location l ON l.id = v.location
JOIN content c ON c.version = v.id
WHERE v.execution = ? AND c.digest IS NOT NULL AND c.stored = 0 AND l.locator LIKE 'file:' || ?
ORDER BY 1
"""
_PORT = re.compile(r"[0-9]{1,5}")
_SHOWN_ELSEWHERE = frozenset(
    {
        "kind",
        "collection",
        "packages",
        "git",
        "processes",
        "inputs",
        "outputs",
        "bytes",
        "new_bytes",
        "sealed",
    }
)
"""Facets that the document has outside `environment`."""


def show_execution(
    graph: Graph,
    text: str,
    *,
    alive: IsRunning,
    is_credential: Callable[[str], bool] = lambda _: False,
    detail: bool = False,
) -> ExecutionDetail:
    """`detail` adds the files and the network peers. `is_credential` tells whether a path whose
    bytes are not stored is a credential file."""
    found = find_execution(graph, text)
    facets, variables = load_facets(graph, found.key)
    unstored = graph.connection.rows(_UNSTORED, (found.key, "%"))
    paths = [str(path_fields(locator)["path"]) for (locator,) in unstored]
    names, tree = list_processes(graph, found)
    files: tuple[documents.File, ...] | UnsetType = UNSET
    if detail:
        asked = facets.get("packages")
        packages = asked if isinstance(asked, dict) else {}
        files = tuple(describe_file(file, packages) for file in list_files(graph, found.key))
    return ExecutionDetail(
        **structs.asdict(get_execution(graph, found.id, alive=alive)),
        tree=tree,
        environment={
            **{name: value for name, value in facets.items() if name not in _SHOWN_ELSEWHERE},
            "variables": variables,
            "devices": list_devices(graph, found.key),
        },
        git=facets.get("git"),
        gaps=tuple(_gaps(graph, found, names)),
        credential_files=tuple(path for path in paths if is_credential(path)),
        files=files,
        network=tuple(_network(graph, found, names)) if detail else UNSET,
    )


def load_facets(graph: Graph, execution: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """An activity's facets, those it began with and those learnt on the way; and its variables."""
    row = graph.connection.row(_FACETS, (execution,))
    variables = json.loads(row[0]) if row else {}
    facets: dict[str, Any] = json.loads(row[1]) if row else {}
    return facets | load_learnt_facets(graph, execution), variables


def load_learnt_facets(graph: Graph, execution: int) -> dict[str, Any]:
    """The facets of an activity that were recorded when it ended."""
    facets: dict[str, Any] = {}
    for (learnt,) in graph.connection.rows(_LEARNT, (execution,)):
        facets.update(json.loads(learnt))
    return facets


def list_processes(
    graph: Graph, found: ExecutionRef
) -> tuple[Mapping[int, ProcessId], tuple[Process, ...]]:
    """The ids of an execution's processes by key, and its tree."""
    merged: dict[int, tuple[Any, ...]] = {}
    for row in graph.connection.rows(_TREE, (found.key,)):
        known = merged.get(row[0])
        if known is not None:
            pairs = zip(known[9:], row[9:], strict=True)
            row = (*row[:9], *(old if new is None else new for old, new in pairs))  # noqa: PLW2901
        merged[row[0]] = row
    names = {key: process_id(found.number, row[1], row[2]) for key, row in merged.items()}
    return names, tuple(_process(row, names) for row in merged.values())


def _process(row: tuple[Any, ...], names: Mapping[int, ProcessId]) -> Process:
    key, _, uid, parent, pid, command, exe, cwd, started, ended, status, signal = row
    return Process(
        id=names[key],
        uid=uid,
        parent=names.get(parent),
        pid=pid,
        command=tuple(json.loads(command)),
        exe=exe,
        cwd=cwd,
        started=from_nanoseconds(started),
        ended=None if ended is None else from_nanoseconds(ended),
        status=status,
        signal=signal,
    )


def describe_file(file: File, packages: dict[str, Any]) -> documents.File:
    left = file.left
    owner = next((v.package for v in file.versions if v.package is not None), None)
    return documents.File(
        **path_fields(file.locator),
        role=file.role,
        category=classify_locator(file.locator, owner, left.mode),
        read=file.read,
        written=file.written,
        digest=left.digest,
        size=left.size,
        stored=left.stored,
        package=None if owner is None else _package(owner, packages),
        versions=len(file.versions),
    )


def classify_locator(locator: Locator, owner: str | None, mode: int | None) -> str:
    """The class of a file: the package that installed it decides, and only then its path and
    mode."""
    return _class(locator, owner, bool((mode or 0) & 0o111))


@lru_cache(maxsize=65536)
def _class(locator: Locator, package: str | None, executable: bool) -> str:
    path = path_of(locator)
    if path is None:
        return "data"
    from clew.prov.file_classes import classify

    return classify(path, package, executable=executable)


def _package(owner: str, packages: dict[str, Any]) -> Package | None:
    from clew.prov import package_urls

    facts = packages.get(owner)
    requested = facts.get("requested") if isinstance(facts, dict) else None
    try:
        found = package_urls.describe_package(owner, requested)
        return None if found is None else msgspec.convert(found, Package)
    except ValueError:  # a newer witness may know package URLs that this one cannot read
        return None


def _gaps(graph: Graph, found: ExecutionRef, names: Mapping[int, ProcessId]) -> Iterator[Gap]:
    for what, why, locator, activity in graph.connection.rows(_GAPS, (found.key, found.key)):
        by = names.get(activity)
        if locator is None:
            yield Gap(what=what, why=why, path=None, by=by)
        else:
            yield Gap(what=what, why=why, **path_fields(locator), by=by)


def _network(graph: Graph, found: ExecutionRef, names: Mapping[int, ProcessId]) -> Iterator[Peer]:
    for locator, activity in graph.connection.rows(_PEERS, (found.key, "%")):
        if not locator.startswith("stream:"):
            yield _peer(locator, names.get(activity, found.id))


def _peer(locator: Locator, by: str) -> Peer:
    if locator.startswith("unix:"):
        return Peer(address=locator, host=None, port=None, by=by)
    scheme, _, rest = locator.partition("://")
    authority = rest.split("/")[0].rpartition("@")[2]
    host, colon, port = authority.rpartition(":")
    if not colon or not _PORT.fullmatch(port):
        host, port = authority, {"https": "443", "http": "80", "ftp": "21"}.get(scheme, "")
    number = int(port) if port else None
    host = host.strip("[]")
    if scheme in ("tcp", "udp"):
        return Peer(address=host, host=None, port=number, by=by)
    return Peer(address=locator, host=host, port=number, by=by)
