"""Resolve what a user typed to an execution, a process, a version or content.

    e2  NAME                an execution
    r2                      a pipeline run: the executions of its tasks
    e2.p3                   one of its processes; e2.UID, of what has no such number
    e2:PATH                 the version it left: what it wrote last, else what it read
    e2:PATH@input  @N       the version it found; the N-th it accessed
    PATH                    the file as it is now
    blake3:HEX              bytes, by any unambiguous 8 or more digits
    pvc://NS/CLAIM/PATH …   what is of a cluster: see `cluster.targets`

The caller passes functions that resolve relative paths and hash current files.
"""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clew.documents.ids import Digest, Locator
from clew.errors import NotFound, UsageError
from clew.prov import tables
from clew.prov.graph import Graph
from clew.prov.locators import file_locator, path_of, stream_locator
from clew.prov.queries.executions import ExecutionRef, find_execution
from clew.prov.queries.formats import process_id, version_id
from clew.prov.queries.pipelines.runs import list_run_executions
from clew.prov.row_keys import digest_text, location_key

_PROCESS = re.compile(r"(.+)\.p(\d{1,15})")
_ACTIVITY = re.compile(r"(e\d{1,15})\.(.+)", re.DOTALL)
_INSIDE = re.compile(r"([^:/@]+):(.+)", re.DOTALL)
_WHICH = re.compile(r"(.+)@(input|[1-9]\d{0,15})", re.DOTALL)
_EXECUTION = re.compile(r"e\d+")
_CLUSTER = re.compile(
    r"(?:(?:pvc|s3|hdfs|ip|pod|service|configmap|secret|image|emptydir)://|pkg:)"
    r"|(?:pod|configmap|secret)/[^/]+/[^/]+$|.*@sha256:"
)
"""What may name something of a cluster: `queries.cluster.targets` says what."""
_HEX = re.compile(r"[0-9a-f]+")
SHORTEST_DIGEST = 8

_NUMBERED = "SELECT id, uid FROM started WHERE execution = ? AND number = ? AND id <> execution"
_BY_UID = "SELECT id, uid FROM started WHERE execution = ? AND uid = ? AND id <> execution"
_COLUMNS = """
SELECT v.id, x.number, v.ordinal, l.locator, c.digest, c.size, c.mode, c.mtime, c.stored,
       v.maker = v.execution, EXISTS (SELECT 1 FROM generated g WHERE g.version = v.id)
FROM version v JOIN location l ON l.id = v.location JOIN execution x ON x.id = v.execution
LEFT JOIN content c ON c.version = v.id
"""
_MET = _COLUMNS + "WHERE v.execution = ? AND v.location = ? ORDER BY v.ordinal"
# The last is taken: of what was recorded here, before what is claimed by records made elsewhere.
_ORDER = " ORDER BY CASE x.made_elsewhere WHEN 0 THEN 1 ELSE 0 END, v.at, x.number, v.ordinal"
_AT = _COLUMNS + f"WHERE v.id IN ({tables.VERSIONS_AT_LOCATION})" + _ORDER
_HOLDING = _COLUMNS + "WHERE x.project = ? AND c.digest >= ? AND c.digest <= ?" + _ORDER
_START = "SELECT cwd, facets FROM started WHERE id = ?"
_ELSEWHERE = """
SELECT DISTINCT l.locator FROM version v JOIN location l ON l.id = v.location WHERE v.execution = ?
"""
_NOTED = "SELECT 1 FROM note WHERE location = ?"


@dataclass(frozen=True)
class Target:
    """The thing that the user named. A version has the known facts of its bytes."""

    kind: str
    """execution, process, version; volume: whatever is on it; or file: one as it is now, which no
    execution accessed like this."""
    label: str
    """Its id in the user's words."""
    keys: tuple[int, ...]
    """The rows it names: one, but for bytes that several versions hold."""
    locator: Locator | None = None
    digest: Digest | None = None
    size: int | None = None
    mode: int | None = None
    mtime: int | None = None
    stored: bool = False
    execution: int | None = None
    """The number of the execution it belongs to."""
    known_place: bool = True
    """Whether any execution accessed a file at this place."""


def resolve_target(
    graph: Graph,
    text: str,
    *,
    machine: str,
    locate: Callable[[bytes], bytes],
    digest_of: Callable[[bytes], Digest | None],
    as_of: int | None = None,
) -> Target:
    """What `text` names.

    `locate` makes a path absolute; `digest_of` hashes a file, or answers None where there is none.
    `as_of` (nanoseconds) is the time at which names of a cluster are resolved; None is now.
    """
    if known := _resolve_other(graph, text, as_of):
        return known
    inside = _INSIDE.fullmatch(text)
    if inside and (_EXECUTION.fullmatch(inside[1]) or _find_optional(graph, inside[1])):
        return _resolve_version(graph, find_execution(graph, inside[1]), inside[2], machine, locate)
    if activity := _resolve_activity(graph, text):
        return activity
    if executions := list_run_executions(graph, text):
        keys = tuple(find_execution(graph, uid).key for uid in executions)
        return Target("execution", text, keys)
    found = _find_optional(graph, text)
    # another party may have named its execution as a file of the user, which then is meant
    certain = found and (not found.made_elsewhere or text in (found.id, found.uid))
    path = locate(os.fsencode(text))
    digest = None if certain else digest_of(path)
    if found and digest is None:
        return Target("execution", found.id, (found.key,), execution=found.number)
    if digest is None and (_EXECUTION.fullmatch(text) or "/" not in text):
        _raise_if_unknown(graph, text, machine, path)
    return _resolve_current_file(graph, text, file_locator(machine, path), digest)


def _resolve_other(graph: Graph, text: str, as_of: int | None) -> Target | None:
    """Bytes by their digest, or what is of a cluster."""
    if text.startswith("blake3:"):
        return _resolve_digest(graph, text)
    if not _CLUSTER.match(text):
        return None
    from clew.prov.queries.cluster.targets import resolve_cluster_target

    return resolve_cluster_target(graph, text, as_of=as_of)


def _find_optional(graph: Graph, text: str) -> ExecutionRef | None:
    try:
        return find_execution(graph, text)
    except NotFound:
        return None


def _raise_if_unknown(graph: Graph, text: str, machine: str, path: bytes) -> None:
    """Raise the most likely error if the text is neither an id, a name nor a known file."""
    key = location_key(graph.project_uid, file_locator(machine, path))
    if graph.connection.row(tables.VERSIONS_AT_LOCATION, (key, key)):
        return
    try:
        find_execution(graph, text)
    except NotFound as unknown:
        if _EXECUTION.fullmatch(text):
            raise
        raise _unknown_error(text, unknown.hint) from unknown


def _unknown_error(text: str, hint: str) -> NotFound:
    return NotFound(f"no execution and no file is called {text}", hint=hint)


def _resolve_process(graph: Graph, found: ExecutionRef, number: int) -> Target:
    row = graph.connection.row(_NUMBERED, (found.key, number))
    if row is None:
        raise NotFound(f"{found.id} has no process {number}", hint=f"clew show {found.id}")
    label = process_id(found.number, number, row[1])
    return Target("process", label, (int(row[0]),), execution=found.number)


def _resolve_activity(graph: Graph, text: str) -> Target | None:
    """A process, or an activity whose witness does not number them: `e2.UID`."""
    if (process := _PROCESS.fullmatch(text)) and _find_optional(graph, process[1]):
        return _resolve_process(graph, find_execution(graph, process[1]), int(process[2]))
    named = _ACTIVITY.fullmatch(text)
    if named is None:
        return None
    execution = _find_optional(graph, named[1])
    if execution is None:
        return None
    row = graph.connection.row(_BY_UID, (execution.key, named[2]))
    if row is None:
        return None
    return Target("process", named[0], (int(row[0]),), execution=execution.number)


def _resolve_version(
    graph: Graph, found: ExecutionRef, text: str, machine: str, locate: Callable[[bytes], bytes]
) -> Target:
    attempts = [(text, "")]
    if which := _WHICH.fullmatch(text):
        attempts.insert(0, (which[1], which[2]))
    for name, wanted in attempts:
        for locator in _candidate_locators(graph, found, name, machine, locate):
            key = location_key(graph.project_uid, locator)
            if rows := graph.connection.rows(_MET, (found.key, key)):
                return _version_target(_choose_version(rows, wanted, found, name))
    raise NotFound(
        f"{found.id} neither read nor wrote {text}", hint=f"clew show {found.id} --detail"
    )


def _candidate_locators(
    graph: Graph, found: ExecutionRef, name: str, machine: str, locate: Callable[[bytes], bytes]
) -> list[Locator]:
    """Possible locators of `name`: as the caller sees it, as the execution saw it, a stream,
    anywhere."""
    raw = os.fsencode(name)
    paths = [locate(raw)]
    cwd, facets = graph.connection.row(_START, (found.key,)) or ("", "{}")
    if cwd:
        paths.append(os.path.normpath(os.path.join(os.fsencode(cwd), raw)))
    if name in ("stdin", "stdout", "stderr"):
        paths += _redirected_paths(json.loads(facets).get("streams", {}), name)
    places = [file_locator(machine, path) for path in paths]
    if name in ("stdin", "stdout", "stderr"):
        places.append(stream_locator(found.uid, name))
    if name.startswith("/") and "%" in name:  # a path that is not text, as we show it
        places.append(Locator(f"file://{machine}{name}"))
    if "://" in name or name.startswith("unix:"):
        places.append(Locator(name))
    ours = f"file://{machine}/"
    for (locator,) in graph.connection.rows(_ELSEWHERE, (found.key,)):
        if not locator.startswith(ours) and path_of(locator) in paths:
            places.append(locator)
    return places


def _redirected_paths(streams: dict[str, Any], name: str) -> list[bytes]:
    """The file that a stream was redirected to, if it was."""
    stream = streams.get(name, {})
    if stream.get("kind") == "stdout":
        stream = streams.get("stdout", {})
    return [os.fsencode(stream["path"])] if stream.get("path") else []


def _choose_version(
    rows: list[tuple[Any, ...]], wanted: str, found: ExecutionRef, name: str
) -> tuple[Any, ...]:
    if wanted == "input":
        there = [row for row in rows if row[9]]
        if not there:
            raise NotFound(
                f"{found.id} did not find {name}: it created it", hint=f"use {found.id}:{name}"
            )
        return there[0]
    if wanted:
        for row in rows:
            if row[2] == int(wanted):
                return row
        raise NotFound(
            f"{found.id} has no version {wanted} of {name}: it read or wrote {len(rows)}",
            hint=f"clew restore --list {name}",
        )
    return ([row for row in rows if row[10]] or rows)[-1]


def _resolve_digest(graph: Graph, text: str) -> Target:
    digits = text.removeprefix("blake3:").lower()
    if len(digits) < SHORTEST_DIGEST or len(digits) > 64 or not _HEX.fullmatch(digits):
        raise UsageError(
            f"{text} is not a digest", hint=f"blake3: and {SHORTEST_DIGEST} to 64 hex digits"
        )
    low, high = bytes.fromhex(digits.ljust(64, "0")), bytes.fromhex(digits.ljust(64, "f"))
    rows = graph.connection.rows(_HOLDING, (graph.project, low, high))
    if not rows:
        raise NotFound(f"no recorded version has the content {text}", hint="clew list")
    if len({bytes(row[4]) for row in rows}) > 1:
        raise UsageError(f"{text} names several contents", hint="give more digits")
    target = _version_target(next((row for row in reversed(rows) if row[8]), rows[-1]))
    return Target(
        "version",
        target.digest or text,
        tuple(int(row[0]) for row in rows),
        **{
            name: getattr(target, name)
            for name in ("locator", "digest", "size", "mode", "mtime", "stored", "execution")
        },
    )


def _resolve_current_file(
    graph: Graph, text: str, locator: Locator, digest: Digest | None
) -> Target:
    key = location_key(graph.project_uid, locator)
    rows = graph.connection.rows(_AT, (key, key))
    if digest is None:
        if rows:
            last = _version_target(rows[-1])
            raise NotFound(f"{text} does not exist now", hint=f"its last version is {last.label}")
        raise _unknown_error(text, "clew list")
    for row in reversed(rows):
        if digest_text(row[4]) == digest:
            return _version_target(row)
    if not rows and not graph.connection.row(_NOTED, (key,)):
        from clew.prov.queries.lineage.content_links import find_link  # only new files need it

        if find_link(graph, locator, digest) is None:
            raise NotFound(f"no execution read or wrote {text}", hint="clew list")
    return Target("file", text, (), locator=locator, digest=digest, known_place=bool(rows))


def _version_target(row: tuple[Any, ...]) -> Target:
    key, number, ordinal, locator, digest, size, mode, mtime, stored = row[:9]
    return Target(
        kind="version",
        label=version_id(number, locator, ordinal),
        keys=(int(key),),
        locator=locator,
        digest=digest_text(digest),
        size=size,
        mode=mode,
        mtime=mtime,
        stored=bool(stored),
        execution=number,
    )
