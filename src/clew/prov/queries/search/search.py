"""Find things by parts of what they are called: by ids, names, commands, images, notes, tags, paths
and digests.

All words of the query must occur, in any order. The best matches come first: what is called exactly
like that, then what begins like that; the user's own files before those of installed packages. A
file name may also be abbreviated (`trncsv` for `train.csv`) if nothing is called as it is written.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clew.db.connection_interface import Row
from clew.documents.lineage.lineage import Hit
from clew.prov.graph import Graph
from clew.prov.queries.cluster.visibility import withhold_hits
from clew.prov.queries.execution_list import LIKE, like_json_pattern, like_pattern
from clew.prov.queries.search.hits import (
    By,
    activity_hit,
    execution_hit,
    remark_hit,
    run_hit,
    version_hit,
)
from clew.prov.queries.tags import IS_TAGGED
from clew.prov.queries.targets import SHORTEST_DIGEST

_MOST_WORDS = 8
_FUZZY = range(3, 33)
"""How long an abbreviation of a file name may be."""
_FUZZY_SCANNED = 500
_PAGE = 1000
"""Rows that are read at once for a caller who may not see all of them."""
_MOST_SCANNED = 20_000
_ID = re.compile(r"([er])([1-9]\d{0,15})(?:\.p([1-9]\d{0,15}))?")
_INSTALLED = ("/usr/", "/lib", "/etc/", "/opt/", "/site-packages/", "/dist-packages/", "/.venv/")
"""The usual directories of packages. Owners are not looked up: it would take too long."""

_EXECUTIONS = """
SELECT x.number, s.kind, coalesce(x.name, s.name), s.command, s.image, s.at
FROM execution x JOIN started s ON s.id = x.id
WHERE x.project = ? AND ({}) ORDER BY x.number DESC LIMIT ? OFFSET ?
"""
_ACTIVITIES = """
SELECT x.number, s.number, s.uid, s.kind, s.name, s.command, s.image, s.at FROM started s
JOIN execution x ON x.id = s.execution
WHERE x.project = ? AND s.id <> s.execution AND ({}) ORDER BY s.at DESC LIMIT ? OFFSET ?
"""
_NOTED = """
SELECT x.number, 'note', n.value, n.at FROM note n JOIN execution x ON x.id = n.activity
WHERE x.project = ? AND {} AND n.name NOT IN ('tag', 'untag') ORDER BY n.at DESC LIMIT ? OFFSET ?
"""
_TAGGED = f"""
SELECT x.number, 'tag', t.value, max(t.at) FROM note t JOIN execution x ON x.id = t.activity
WHERE x.project = ? AND {{}} AND t.name IN ('tag', 'untag')
GROUP BY x.number, t.value HAVING {IS_TAGGED} ORDER BY 4 DESC LIMIT ? OFFSET ?
"""  # noqa: S608
_RUNS = """
SELECT r.number, s.facets, s.at FROM run r JOIN started s ON s.id = r.id
WHERE r.project = ? ORDER BY r.number DESC LIMIT 1000
"""
_IS_INSTALLED = " OR ".join(["l.locator LIKE ?"] * len(_INSTALLED))
_PATHS = f"""
WITH matching AS (SELECT id, locator FROM location l WHERE l.project = ? AND ({{}}))
SELECT l.id, CASE WHEN {_IS_INSTALLED} THEN 4 ELSE 0 END
  + CASE WHEN lower(l.locator) {LIKE} THEN 0
         WHEN lower(l.locator) {LIKE} AND NOT lower(l.locator) {LIKE} THEN 1
         WHEN lower(l.locator) {LIKE} AND NOT lower(l.locator) {LIKE} THEN 2 ELSE 3 END AS rank
FROM matching l ORDER BY rank, length(l.locator), l.id LIMIT ? OFFSET ?
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
_COLUMNS = "v.location, x.number, l.locator, v.ordinal, v.at, c.digest, c.size"
_VERSIONS = f"""
SELECT {_COLUMNS} FROM location l
JOIN version v ON v.id = ({_LAST.replace("{}", "<>")}) OR v.id = ({_LAST.replace("{}", "=")})
JOIN execution x ON x.id = v.execution LEFT JOIN content c ON c.version = v.id
WHERE l.id IN ({{}}) ORDER BY v.at
"""  # noqa: S608
_EARLIER = f"""
SELECT * FROM (SELECT {_COLUMNS} FROM version v JOIN location l ON l.id = v.location
JOIN execution x ON x.id = v.execution LEFT JOIN content c ON c.version = v.id
WHERE l.id IN ({{}}) ORDER BY v.at DESC LIMIT {_MOST_SCANNED}) AS earlier ORDER BY at
"""  # noqa: S608
_HOLDING = f"""
SELECT {_COLUMNS} FROM content c
JOIN version v ON v.id = c.version JOIN location l ON l.id = v.location
JOIN execution x ON x.id = v.execution
WHERE x.project = ? AND c.digest >= ? AND c.digest <= ? ORDER BY v.at DESC LIMIT ? OFFSET ?
"""  # noqa: S608


@dataclass(frozen=True)
class _Query:
    """The user's query. SQL lowers it like the columns it is compared with."""

    text: str
    words: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", self.text.split()[:_MOST_WORDS] or [self.text])

    def contained(self, column: str) -> str:
        """A condition: all words are parts of this column."""
        return "(" + " AND ".join([f"lower({column}) {LIKE}"] * len(self.words)) + ")"

    @property
    def parts(self) -> list[str]:
        return [like_pattern(word) for word in self.words]

    @property
    def parts_of_json(self) -> list[str]:
        return [like_json_pattern(word) for word in self.words]

    def matches(self, text: str | None) -> bool:
        return text is not None and all(word.lower() in text.lower() for word in self.words)


Found = list[tuple[int, Hit]]
"""Hits and their ranks: the lowest is the best."""


def search(graph: Graph, text: str, *, limit: int) -> list[Hit]:
    """Find what contains `text`, best first; at most `limit` of each kind. Hits that the caller may
    not see are left out, and do not count."""
    query = _Query(text.removeprefix("pod/") or text)  # as targets name a Pod
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


def _select(
    graph: Graph,
    sql: str,
    given: Sequence[object],
    limit: int,
    make: Callable[[list[Row]], Found],
) -> Found:
    """The first hits that the caller may see, made of the rows of a query."""
    size = _PAGE if graph.is_restricted else limit
    found: Found = []
    for start in range(0, _MOST_SCANNED, size):
        rows = graph.connection.rows(sql, (graph.project, *given, size, start))
        found += _withhold(graph, make(rows))
        if not graph.is_restricted or len(found) >= limit or len(rows) < size:
            break
    return found[:limit]


def _withhold(graph: Graph, found: Found) -> Found:
    shown = {(hit.kind, hit.id) for hit in withhold_hits(graph, [hit for _, hit in found])}
    return [(rank, hit) for rank, hit in found if (hit.kind, hit.id) in shown]


def _digits(text: str) -> str | None:
    digits = text.removeprefix("blake3:").lower()
    if SHORTEST_DIGEST <= len(digits) <= 64 and not set(digits) - set("0123456789abcdef"):
        return digits
    return None


def _by_id(graph: Graph, text: str) -> Found:
    """The execution, run or process with exactly this name or id."""
    named = _ID.fullmatch(text)
    if named is None:
        return []
    number = int(named[2])
    if named[1] == "r":
        sql = _RUNS.replace("ORDER BY", "AND r.number = ? ORDER BY")
        rows = graph.connection.rows(sql, (graph.project, number))
        return [(0, run_hit(*row)) for row in rows]
    if named[3]:
        sql, given = _ACTIVITIES.format("x.number = ? AND s.number = ?"), (number, int(named[3]))
        return _select(
            graph, sql, given, 1, lambda rows: [(0, activity_hit(*row, by="id")) for row in rows]
        )
    sql = _EXECUTIONS.format("x.number = ?")
    return _select(
        graph, sql, (number,), 1, lambda rows: [(0, execution_hit(*row, by="id")) for row in rows]
    )


def _runs(graph: Graph, query: _Query, limit: int) -> Found:
    """The latest runs whose pipelines match by name."""
    hits = [run_hit(*row) for row in graph.connection.rows(_RUNS, (graph.project,))]
    return [(2, hit) for hit in hits if query.matches(hit.label)][:limit]


def _executions(graph: Graph, query: _Query, limit: int) -> Found:
    def rank(row: Row) -> tuple[int, Hit]:
        name = row[2]
        by = _matching(query, name, row[4])
        exact = (name or "").lower() == query.text.lower()
        return (1 if exact else 2 if by == "name" else 6, execution_hit(*row, by=by))

    columns = ("x.name", "s.name", "s.command", "s.image")
    name, own, command, image = map(query.contained, columns)
    sql = _EXECUTIONS.format(f"{name} OR {own} OR {command} OR {image}")
    given = (*query.parts, *query.parts, *query.parts_of_json, *query.parts)
    return _select(graph, sql, given, limit, lambda rows: list(map(rank, rows)))


def _activities(graph: Graph, query: _Query, limit: int) -> Found:
    def rank(row: Row) -> tuple[int, Hit]:
        by = _matching(query, row[4], row[6])
        return (4 if by == "name" else 7, activity_hit(*row, by=by))

    name, command, image = map(query.contained, ("s.name", "s.command", "s.image"))
    sql = _ACTIVITIES.format(f"{name} OR {command} OR {image}")
    given = (*query.parts, *query.parts_of_json, *query.parts)
    return _select(graph, sql, given, limit, lambda rows: list(map(rank, rows)))


def _matching(query: _Query, name: str | None, image: str | None) -> By:
    if query.matches(name):
        return "name"
    return "image" if query.matches(image) else "command"


def _noted(graph: Graph, query: _Query, limit: int) -> Found:
    found: Found = []
    for sql, column in ((_NOTED, "n.value"), (_TAGGED, "t.value")):
        contained = sql.format(query.contained(column))
        found += _select(
            graph,
            contained,
            query.parts,
            limit,
            lambda rows: [(3, remark_hit(*row)) for row in rows],
        )
    found.sort(key=lambda one: one[1].at, reverse=True)
    return found[:limit]


def _by_digest(graph: Graph, digits: str, limit: int) -> Found:
    low, high = bytes.fromhex(digits.ljust(64, "0")), bytes.fromhex(digits.ljust(64, "f"))
    return _select(
        graph,
        _HOLDING,
        (low, high),
        limit,
        lambda rows: [(1, version_hit(row, "digest")) for row in rows],
    )


def _by_path(graph: Graph, query: _Query, limit: int) -> Found:
    """The latest versions of files whose paths match; each file once."""
    word = like_pattern(query.words[-1])[1:-1]  # the last one is the name, where it matters
    ranked = (f"%/{word}", f"%/{word}%", f"%/{word}%/%", f"%{word}%", f"%{word}%/%")
    installed = [f"%{part}%" for part in _INSTALLED]
    sql = _PATHS.format(query.contained("l.locator"))
    found = _select(
        graph,
        sql,
        (*query.parts, *installed, *ranked),
        limit,
        lambda rows: _latest_versions(graph, {int(key): int(rank) for key, rank in rows}),
    )
    if not found and len(query.words) == 1 and len(query.words[0]) in _FUZZY:
        named = _abbreviated(graph, query.words[0].lower(), installed)
        found = _withhold(graph, _latest_versions(graph, named))[:limit]
    return found


def _latest_versions(graph: Graph, ranks: dict[int, int]) -> Found:
    """The latest version of each of these places, as a hit with the place's rank. A place whose
    latest versions the caller may not see has earlier ones, too."""

    def pick(rows: list[Row]) -> dict[int, Hit]:
        hits = {hit.id: (row[0], hit) for row in rows for hit in [version_hit(row, "path")]}
        shown = withhold_hits(graph, [hit for _, hit in hits.values()])
        return dict(hits[hit.id] for hit in shown)

    last = pick(graph.connection.rows_in(_VERSIONS, ranks))
    if graph.is_restricted and (hidden := ranks.keys() - last.keys()):
        last |= pick(graph.connection.rows_in(_EARLIER, hidden))
    return [(_RANKS[rank], last[key]) for key, rank in ranks.items() if key in last]


_RANKS = (2, 3, 5, 7, *(8,) * 4, 9)
"""From how well a path matches to how well a hit does."""


def _abbreviated(graph: Graph, word: str, installed: list[str]) -> dict[int, int]:
    """Files whose names have these characters in this order, the shortest first."""
    pattern = "%/" + "%".join(like_pattern(char)[1:-1] for char in word) + "%"
    rows = graph.connection.rows(_ABBREVIATED, (graph.project, pattern, *installed))
    names = [(key, locator.rpartition("/")[2].lower()) for key, locator in rows]
    matching = [(len(name), key) for key, name in names if _abbreviates(word, name)]
    return {key: len(_RANKS) - 1 for _, key in sorted(matching)}


def _abbreviates(word: str, name: str) -> bool:
    """Whether `name` has these characters in this order. A regular expression would take forever
    for some names."""
    rest = iter(name)
    return all(char in rest for char in word)
