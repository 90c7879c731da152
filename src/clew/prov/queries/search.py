"""Find things by a part of a path, name, command, note or tag; or by a digest."""

import json
from operator import itemgetter
from typing import Any, Literal

from clew.documents.document import from_nanoseconds
from clew.documents.ids import Uid
from clew.documents.lineage import Hit
from clew.prov.graph import Graph
from clew.prov.queries.execution_list import LIKE, like, like_json
from clew.prov.queries.formats import (
    execution_id,
    locator_kind,
    path_fields,
    process_id,
    run_id,
    version_id,
)
from clew.prov.queries.tags import IS_TAGGED
from clew.prov.queries.targets import SHORTEST_DIGEST
from clew.prov.row_keys import digest_text

_LONGEST_LABEL = 1000
_NAMED = f"""
SELECT x.number, x.name, s.command, s.at FROM execution x JOIN started s ON s.id = x.id
WHERE x.project = ? AND (lower(x.name) {LIKE} OR lower(s.command) {LIKE})
ORDER BY x.number DESC LIMIT ?
"""  # noqa: S608
_NOTED = f"""
SELECT x.number, 'note', n.value, n.at FROM note n JOIN execution x ON x.id = n.activity
WHERE x.project = ? AND lower(n.value) {LIKE} AND n.name NOT IN ('tag', 'untag')
ORDER BY n.at DESC LIMIT ?
"""  # noqa: S608
_TAGGED = f"""
SELECT x.number, 'tag', t.value, max(t.at) FROM note t JOIN execution x ON x.id = t.activity
WHERE x.project = ? AND lower(t.value) {LIKE} AND t.name IN ('tag', 'untag')
GROUP BY x.number, t.value HAVING {IS_TAGGED} ORDER BY 4 DESC LIMIT ?
"""  # noqa: S608
_RUNS = """
SELECT r.number, s.facets, s.at FROM run r JOIN started s ON s.id = r.id
WHERE r.project = ? ORDER BY r.number DESC LIMIT 1000
"""
_PROCESSES = f"""
SELECT x.number, s.number, s.uid, s.command, s.at FROM started s
JOIN execution x ON x.id = s.execution
WHERE x.project = ? AND s.kind = 'process' AND lower(s.command) {LIKE}
ORDER BY s.at DESC LIMIT ?
"""  # noqa: S608
_PATHS = f"""
SELECT l.id, l.locator FROM location l WHERE l.project = ? AND lower(l.locator) {LIKE} LIMIT ?
"""  # noqa: S608
_VERSIONS = """
SELECT v.location, x.number, l.locator, v.ordinal, v.at, c.digest, c.size FROM version v
JOIN location l ON l.id = v.location JOIN execution x ON x.id = v.execution
LEFT JOIN content c ON c.version = v.id WHERE v.location IN ({}) ORDER BY v.at
"""
_HOLDING = """
SELECT v.location, x.number, l.locator, v.ordinal, v.at, c.digest, c.size FROM content c
JOIN version v ON v.id = c.version JOIN location l ON l.id = v.location
JOIN execution x ON x.id = v.execution
WHERE x.project = ? AND c.digest >= ? AND c.digest <= ? ORDER BY v.at DESC LIMIT ?
"""


def search(graph: Graph, text: str, *, limit: int) -> list[Hit]:
    """What `text` is a part of, executions and runs first; at most `limit` of each kind."""
    if (digits := _digits(text)) is not None:
        return _by_digest(graph, digits, limit)
    part, inner = like(text), like_json(text)
    rows = graph.connection.rows
    found = _runs(graph, text.lower())[:limit]
    found += [_execution(*row) for row in rows(_NAMED, (graph.project, part, inner, limit))]
    noted = [row for sql in (_NOTED, _TAGGED) for row in rows(sql, (graph.project, part, limit))]
    found += [_noted(*row) for row in sorted(noted, key=itemgetter(3), reverse=True)[:limit]]
    found += [_process(*row) for row in rows(_PROCESSES, (graph.project, inner, limit))]
    return found + _by_path(graph, part, limit)


def _digits(text: str) -> str | None:
    digits = text.removeprefix("blake3:").lower()
    if SHORTEST_DIGEST <= len(digits) <= 64 and not set(digits) - set("0123456789abcdef"):
        return digits
    return None


def _by_digest(graph: Graph, digits: str, limit: int) -> list[Hit]:
    low, high = bytes.fromhex(digits.ljust(64, "0")), bytes.fromhex(digits.ljust(64, "f"))
    rows = graph.connection.rows(_HOLDING, (graph.project, low, high, limit))
    return [_version(row, "digest") for row in rows]


def _by_path(graph: Graph, part: str, limit: int) -> list[Hit]:
    places = [row[0] for row in graph.connection.rows(_PATHS, (graph.project, part, limit))]
    last = {row[0]: row for row in graph.connection.rows_in(_VERSIONS, places)}
    return [_version(row, "path") for row in last.values()]


def _runs(graph: Graph, text: str) -> list[Hit]:
    """The latest runs whose pipelines are called like that."""
    found = []
    for number, facets, at in graph.connection.rows(_RUNS, (graph.project,)):
        name = json.loads(facets).get("pipeline") or ""
        if text in name.lower():
            found.append(
                Hit(
                    kind="run",
                    id=run_id(number),
                    label=name,
                    by="name",
                    execution=None,
                    at=from_nanoseconds(at),
                )
            )
    return found


def _execution(number: int, name: str | None, command: str, at: int) -> Hit:
    return Hit(
        kind="execution",
        id=execution_id(number),
        label=name or " ".join(json.loads(command)),
        by="name" if name else "command",
        execution=execution_id(number),
        at=from_nanoseconds(at),
    )


def _noted(number: int, by: Literal["note", "tag"], value: str, at: int) -> Hit:
    return Hit(
        kind="execution",
        id=execution_id(number),
        label=value[:_LONGEST_LABEL],
        by=by,
        execution=execution_id(number),
        at=from_nanoseconds(at),
    )


def _process(execution: int, number: int | None, uid: Uid, command: str, at: int) -> Hit:
    return Hit(
        kind="process",
        id=process_id(execution, number, uid),
        label=" ".join(json.loads(command)),
        by="command",
        execution=execution_id(execution),
        at=from_nanoseconds(at),
    )


def _version(row: tuple[Any, ...], by: Literal["path", "digest"]) -> Hit:
    _, number, locator, ordinal, at, digest, size = row
    return Hit(
        kind=locator_kind(locator),
        id=version_id(number, locator, ordinal),
        label=path_fields(locator)["path"],
        by=by,
        execution=execution_id(number),
        at=from_nanoseconds(at),
        digest=digest_text(digest),
        size=size,
    )
