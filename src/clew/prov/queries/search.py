"""Find things by parts of what they are called: by ids, names, commands, images, notes, tags, paths
and digests.

All words of the query must occur, in any order. The best matches come first: what is called exactly
like that, then what begins like that; the user's own files before those of installed packages. A
file name may also be abbreviated (`trncsv` for `train.csv`) if nothing is called as it is written.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from clew.documents.document import from_nanoseconds
from clew.documents.ids import Uid
from clew.documents.lineage import Hit
from clew.prov.graph import Graph
from clew.prov.queries.execution_list import LIKE, like, like_json
from clew.prov.queries.formats import (
    execution_id,
    path_fields,
    process_id,
    run_id,
    version_id,
)
from clew.prov.queries.lineage.captions import kind_of_locator
from clew.prov.queries.tags import IS_TAGGED
from clew.prov.queries.targets import SHORTEST_DIGEST
from clew.prov.row_keys import digest_text

By = Literal["id", "name", "command", "image", "note", "tag", "path", "digest"]

_LONGEST_LABEL = 1000
_MOST_WORDS = 8
_FUZZY = range(3, 33)
"""How long an abbreviation of a file name may be."""
_FUZZY_SCANNED = 500
_ID = re.compile(r"([er])([1-9]\d{0,15})(?:\.p([1-9]\d{0,15}))?")
_INSTALLED = ("/usr/", "/lib", "/etc/", "/opt/", "/site-packages/", "/dist-packages/", "/.venv/")
"""Where files of packages mostly are. Their owners are not looked up: it would take too long."""

_EXECUTIONS = """
SELECT x.number, x.name, s.command, s.image, s.at FROM execution x JOIN started s ON s.id = x.id
WHERE x.project = ? AND ({}) ORDER BY x.number DESC LIMIT ?
"""
_ACTIVITIES = """
SELECT x.number, s.number, s.uid, s.kind, s.name, s.command, s.image, s.at FROM started s
JOIN execution x ON x.id = s.execution
WHERE x.project = ? AND s.id <> s.execution AND ({}) ORDER BY s.at DESC LIMIT ?
"""
_NOTED = """
SELECT x.number, 'note', n.value, n.at FROM note n JOIN execution x ON x.id = n.activity
WHERE x.project = ? AND {} AND n.name NOT IN ('tag', 'untag') ORDER BY n.at DESC LIMIT ?
"""
_TAGGED = f"""
SELECT x.number, 'tag', t.value, max(t.at) FROM note t JOIN execution x ON x.id = t.activity
WHERE x.project = ? AND {{}} AND t.name IN ('tag', 'untag')
GROUP BY x.number, t.value HAVING {IS_TAGGED} ORDER BY 4 DESC LIMIT ?
"""  # noqa: S608
_RUNS = """
SELECT r.number, s.facets, s.at FROM run r JOIN started s ON s.id = r.id
WHERE r.project = ? ORDER BY r.number DESC LIMIT 1000
"""
_IS_INSTALLED = " OR ".join(["l.locator LIKE ?"] * len(_INSTALLED))
_PATHS = f"""
SELECT l.id, CASE WHEN {_IS_INSTALLED} THEN 4 ELSE 0 END
  + CASE WHEN lower(l.locator) {LIKE} THEN 0
         WHEN lower(l.locator) {LIKE} AND NOT lower(l.locator) {LIKE} THEN 1
         WHEN lower(l.locator) {LIKE} AND NOT lower(l.locator) {LIKE} THEN 2 ELSE 3 END AS rank
FROM location l WHERE l.project = ? AND ({{}}) ORDER BY rank, length(l.locator), l.id LIMIT ?
"""  # noqa: S608
_ABBREVIATED = f"""
SELECT l.id, l.locator FROM location l WHERE l.project = ? AND lower(l.locator) {LIKE}
AND NOT ({_IS_INSTALLED}) ORDER BY length(l.locator), l.id LIMIT {_FUZZY_SCANNED}
"""  # noqa: S608
# Found and made versions have an index each.
_LAST = """
SELECT v.id FROM version v WHERE v.location = l.id AND v.maker {} v.execution
ORDER BY v.at DESC LIMIT 1
"""
_VERSIONS = f"""
SELECT v.location, x.number, l.locator, v.ordinal, v.at, c.digest, c.size FROM location l
JOIN version v ON v.id = ({_LAST.replace("{}", "<>")}) OR v.id = ({_LAST.replace("{}", "=")})
JOIN execution x ON x.id = v.execution LEFT JOIN content c ON c.version = v.id
WHERE l.id IN ({{}}) ORDER BY v.at
"""  # noqa: S608
_HOLDING = """
SELECT v.location, x.number, l.locator, v.ordinal, v.at, c.digest, c.size FROM content c
JOIN version v ON v.id = c.version JOIN location l ON l.id = v.location
JOIN execution x ON x.id = v.execution
WHERE x.project = ? AND c.digest >= ? AND c.digest <= ? ORDER BY v.at DESC LIMIT ?
"""


@dataclass(frozen=True)
class _Query:
    """What the user typed. SQL lowers it, in the same way as what it is compared with."""

    text: str
    words: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", self.text.split()[:_MOST_WORDS] or [self.text])

    def contained(self, column: str) -> str:
        """A condition: all words are parts of this column."""
        return "(" + " AND ".join([f"lower({column}) {LIKE}"] * len(self.words)) + ")"

    @property
    def parts(self) -> list[str]:
        return [like(word) for word in self.words]

    @property
    def parts_of_json(self) -> list[str]:
        return [like_json(word) for word in self.words]

    def matches(self, text: str | None) -> bool:
        return text is not None and all(word.lower() in text.lower() for word in self.words)


Found = list[tuple[int, Hit]]
"""Hits and their ranks: the lowest is the best."""


def search(graph: Graph, text: str, *, limit: int) -> list[Hit]:
    """What `text` is a part of, best first; at most `limit` of each kind."""
    query = _Query(text)
    found = _by_id(graph, text) + _runs(graph, query, limit) + _executions(graph, query, limit)
    found += _noted(graph, query, limit) + _activities(graph, query, limit)
    if (digits := _digits(text)) is not None:
        found += _by_digest(graph, digits, limit)
    found += _by_path(graph, query, limit)
    found.sort(key=lambda one: one[0])
    first: dict[tuple[str, str], Hit] = {}
    for _, hit in found:
        first.setdefault((hit.kind, hit.id), hit)
    return list(first.values())


def _digits(text: str) -> str | None:
    digits = text.removeprefix("blake3:").lower()
    if SHORTEST_DIGEST <= len(digits) <= 64 and not set(digits) - set("0123456789abcdef"):
        return digits
    return None


def _by_id(graph: Graph, text: str) -> Found:
    """The execution, run or process that is called exactly like that."""
    named = _ID.fullmatch(text)
    if named is None:
        return []
    number, rows = int(named[2]), graph.connection.rows
    if named[1] == "r":
        sql = _RUNS.replace("ORDER BY", "AND r.number = ? ORDER BY")
        return [(0, _run(*row)) for row in rows(sql, (graph.project, number))]
    if named[3]:
        sql, given = _ACTIVITIES.format("x.number = ? AND s.number = ?"), (number, int(named[3]))
        return [(0, _activity(*row, by="id")) for row in rows(sql, (graph.project, *given, 1))]
    sql = _EXECUTIONS.format("x.number = ?")
    return [(0, _execution(*row, by="id")) for row in rows(sql, (graph.project, number, 1))]


def _runs(graph: Graph, query: _Query, limit: int) -> Found:
    """The latest runs whose pipelines are called like that."""
    hits = [_run(*row) for row in graph.connection.rows(_RUNS, (graph.project,))]
    return [(2, hit) for hit in hits if query.matches(hit.label)][:limit]


def _executions(graph: Graph, query: _Query, limit: int) -> Found:
    name, command, image = map(query.contained, ("x.name", "s.command", "s.image"))
    sql = _EXECUTIONS.format(f"{name} OR {command} OR {image}")
    given = (*query.parts, *query.parts_of_json, *query.parts)
    found: Found = []
    for row in graph.connection.rows(sql, (graph.project, *given, limit)):
        by = _matching(query, row[1], row[3])
        exact = (row[1] or "").lower() == query.text.lower()
        found.append((1 if exact else 2 if by == "name" else 6, _execution(*row, by=by)))
    return found


def _activities(graph: Graph, query: _Query, limit: int) -> Found:
    name, command, image = map(query.contained, ("s.name", "s.command", "s.image"))
    sql = _ACTIVITIES.format(f"{name} OR {command} OR {image}")
    given = (*query.parts, *query.parts_of_json, *query.parts)
    found: Found = []
    for row in graph.connection.rows(sql, (graph.project, *given, limit)):
        by = _matching(query, row[4], row[6])
        found.append((4 if by == "name" else 7, _activity(*row, by=by)))
    return found


def _matching(query: _Query, name: str | None, image: str | None) -> By:
    if query.matches(name):
        return "name"
    return "image" if query.matches(image) else "command"


def _noted(graph: Graph, query: _Query, limit: int) -> Found:
    rows = []
    for sql, column in ((_NOTED, "n.value"), (_TAGGED, "t.value")):
        found = sql.format(query.contained(column))
        rows += graph.connection.rows(found, (graph.project, *query.parts, limit))
    rows.sort(key=lambda row: -int(row[3]))
    return [(3, _remark(*row)) for row in rows[:limit]]


def _by_digest(graph: Graph, digits: str, limit: int) -> Found:
    low, high = bytes.fromhex(digits.ljust(64, "0")), bytes.fromhex(digits.ljust(64, "f"))
    rows = graph.connection.rows(_HOLDING, (graph.project, low, high, limit))
    return [(1, _version(row, "digest")) for row in rows]


def _by_path(graph: Graph, query: _Query, limit: int) -> Found:
    """The latest versions of files that are called like that; each file once."""
    word = like(query.words[-1])[1:-1]  # the last one is the name, where it matters
    ranked = (f"%/{word}", f"%/{word}%", f"%/{word}%/%", f"%{word}%", f"%{word}%/%")
    installed = [f"%{part}%" for part in _INSTALLED]
    sql = _PATHS.format(query.contained("l.locator"))
    given = (*installed, *ranked, graph.project, *query.parts, limit)
    ranks = {int(row[0]): int(row[1]) for row in graph.connection.rows(sql, given)}
    if not ranks and len(query.words) == 1 and len(query.words[0]) in _FUZZY:
        ranks = _abbreviated(graph, query.words[0].lower(), installed, limit)
    last = {row[0]: row for row in graph.connection.rows_in(_VERSIONS, ranks)}
    return [
        (_RANKS[rank], _version(last[key], "path")) for key, rank in ranks.items() if key in last
    ]


_RANKS = (2, 3, 5, 7, *(8,) * 4, 9)
"""From how well a path matches to how well a hit does."""


def _abbreviated(graph: Graph, word: str, installed: list[str], limit: int) -> dict[int, int]:
    """Files whose names have these characters in this order, the shortest first."""
    pattern = "%/" + "%".join(like(char)[1:-1] for char in word) + "%"
    rows = graph.connection.rows(_ABBREVIATED, (graph.project, pattern, *installed))
    names = [(key, locator.rpartition("/")[2].lower()) for key, locator in rows]
    matching = [(len(name), key) for key, name in names if _abbreviates(word, name)]
    return {key: len(_RANKS) - 1 for _, key in sorted(matching)[:limit]}


def _abbreviates(word: str, name: str) -> bool:
    """Whether `name` has these characters in this order. A regular expression would take forever
    for some names."""
    rest = iter(name)
    return all(char in rest for char in word)


def _run(number: int, facets: str, at: int) -> Hit:
    return Hit(
        kind="run",
        id=run_id(number),
        label=json.loads(facets).get("pipeline") or "",
        by="name",
        execution=None,
        at=from_nanoseconds(at),
    )


def _execution(
    number: int, name: str | None, command: str, image: str | None, at: int, *, by: By
) -> Hit:
    return Hit(
        kind="execution",
        id=execution_id(number),
        label=_label(name, command, image, by),
        by=by,
        execution=execution_id(number),
        at=from_nanoseconds(at),
    )


def _remark(number: int, by: Literal["note", "tag"], value: str, at: int) -> Hit:
    return Hit(
        kind="execution",
        id=execution_id(number),
        label=value[:_LONGEST_LABEL],
        by=by,
        execution=execution_id(number),
        at=from_nanoseconds(at),
    )


def _activity(
    execution: int,
    number: int | None,
    uid: Uid,
    kind: str,
    name: str | None,
    command: str,
    image: str | None,
    at: int,
    *,
    by: By,
) -> Hit:
    return Hit(
        kind=kind,
        id=process_id(execution, number, uid),
        label=_label(name, command, image, by),
        by=by,
        execution=execution_id(execution),
        at=from_nanoseconds(at),
    )


def _label(name: str | None, command: str, image: str | None, by: By) -> str:
    if by == "image" and image:
        return image[:_LONGEST_LABEL]
    return (name or " ".join(json.loads(command)))[:_LONGEST_LABEL]


def _version(row: tuple[Any, ...], by: Literal["path", "digest"]) -> Hit:
    _, number, locator, ordinal, at, digest, size = row
    kind = kind_of_locator(locator)
    return Hit(
        kind="file" if kind == "data" else kind,
        id=version_id(number, locator, ordinal),
        label=path_fields(locator)["path"],
        by=by,
        execution=execution_id(number),
        at=from_nanoseconds(at),
        digest=digest_text(digest),
        size=size,
    )
