"""The graph's tables as the fold writes them. `docs/formats/graph.md` describes each column.

Most rows never change: a second one with the same key is dropped. For three kinds a rule decides
that does not depend on the order of arrival: the first `started` of an activity counts (smallest
n), the last `content` of a version (largest n), and the earliest time of a version.
"""

# ruff: noqa: S608  (the only names put into SQL here are our own tables and columns)

from typing import Final

COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "location": ("id", "project", "locator"),
    "version": ("id", "execution", "location", "maker", "ordinal", "at"),
    "started": (
        "id", "execution", "n", "at", "uid", "kind", "parent", "number", "pid", "agent",
        "command", "exe", "cwd", "name", "image", "node", "mode", "collection",
        "environment", "facets", "words",
    ),
    "ended": (
        "activity", "n", "at", "status", "signal", "processes", "inputs", "outputs",
        "bytes", "new_bytes", "usage", "facets",
    ),
    "content": ("version", "n", "digest", "size", "mode", "mtime", "stored", "package", "source"),
    "used": ("activity", "n", "version", "at", "how"),
    "generated": ("activity", "n", "version", "at", "how", "finished"),
    "invalidated": ("activity", "n", "version", "at", "how"),
    "looked": ("activity", "n", "location", "kind", "at", "answer", "also"),
    "informed": ("activity", "n", "source", "at", "via"),
    "alias": ("execution", "n", "a", "b", "at"),
    "gap": ("activity", "n", "what", "why", "location", "at"),
}  # fmt: skip

KEYS: Final[dict[str, int]] = {
    **dict.fromkeys(("location", "version", "started", "content"), 1),
    "ended": 2,
    **dict.fromkeys(("used", "generated", "invalidated", "informed", "gap"), 3),
    **dict.fromkeys(("looked", "alias"), 4),
}
"""How many of a table's first columns are its key."""

IMPORTED, REPEAT_OF_IMPORTED = 1, 2
"""`execution.made_elsewhere`: the record came from another party; or it was recorded here, but runs
the command of such a record."""

_CONFLICT_RULES: Final[dict[str, tuple[str, str]]] = {
    "started": ("id", "excluded.n < started.n"),
    "content": ("version", "excluded.n > content.n"),
    "version": ("id", "excluded.at < version.at"),
}


def _insert(table: str) -> str:
    columns = COLUMNS[table]
    marks = ", ".join("?" * len(columns))
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
    if table not in _CONFLICT_RULES:
        return f"{sql} ON CONFLICT DO NOTHING"
    key, when = _CONFLICT_RULES[table]
    changes = ", ".join(f"{c} = excluded.{c}" for c in columns if c != key)
    return f"{sql} ON CONFLICT ({key}) DO UPDATE SET {changes} WHERE {when}"


INSERTS: Final[dict[str, str]] = {table: _insert(table) for table in COLUMNS}
"""For this project's own recorder, whose later events correct earlier ones."""

IMPORTS: Final[dict[str, str]] = {
    table: f"{sql.partition(' ON CONFLICT')[0]} ON CONFLICT DO NOTHING"
    for table, sql in INSERTS.items()
} | {"version": INSERTS["version"]}
"""For records of another party: nothing that is there is changed, but for the time of a version,
which is the earliest that is known."""

BEGIN_PROJECT = "INSERT INTO project (id, uid, executions) VALUES (?, ?, 0) ON CONFLICT DO NOTHING"
LOCK_PROJECT = "UPDATE project SET uid = uid WHERE id = ?"
NEXT_NUMBER = "UPDATE project SET executions = executions + 1 WHERE id = ? RETURNING executions"
NEXT_NUMBERS = "UPDATE project SET executions = executions + ? WHERE id = ? RETURNING executions"
COUNT_OBSERVATION = "UPDATE project SET observations = observations + 1 WHERE id = ?"
FIND_EXECUTIONS = "SELECT id FROM execution WHERE id IN ({})"
RETURN_NUMBER = """
UPDATE project SET executions = executions - 1
WHERE id = ? AND executions = (SELECT number FROM execution WHERE id = ?)
"""
NEXT_RUN_NUMBER = "SELECT COALESCE(MAX(number), 0) + 1 FROM run WHERE project = ?"
FIND_NUMBER = """
SELECT number FROM execution WHERE id = ? UNION ALL SELECT number FROM run WHERE id = ?
"""
FIND_NAME = "SELECT number FROM execution WHERE project = ? AND name = ?"
BEGIN_EXECUTION = (
    "INSERT INTO execution (id, project, uid, number, name, begun, made_elsewhere, of_cluster)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
BEGIN_RUN = "INSERT INTO run (id, project, uid, number, begun) VALUES (?, ?, ?, ?, ?)"
CLAIMS = f"""
SELECT DISTINCT x.id FROM started s JOIN execution x ON x.id = s.execution
WHERE x.made_elsewhere = {IMPORTED} AND s.id IN ({{}})
"""
MADE_ELSEWHERE = "SELECT made_elsewhere FROM execution WHERE id = ?"
GIVE_NAME = (
    "UPDATE execution SET name = ? WHERE id = ? AND name IS NULL AND NOT EXISTS"
    " (SELECT 1 FROM execution AS other WHERE other.project = ? AND other.name = ?)"
)

_ACTIVITIES = "(SELECT id FROM started WHERE execution = ?)"
_VERSIONS = "(SELECT id FROM version WHERE execution = ?)"
REMOVE: Final[tuple[str, ...]] = (
    f"DELETE FROM note WHERE version IN {_VERSIONS}",
    f"DELETE FROM note WHERE activity IN {_ACTIVITIES}",
    *(f"DELETE FROM note WHERE {column} = ?" for column in ("activity", "execution")),
    "DELETE FROM signature WHERE execution = ?",
    "DELETE FROM activity_value WHERE activity = ?",
    "DELETE FROM activity_summary WHERE id = ?",
    f"DELETE FROM content WHERE version IN {_VERSIONS}",
    *(
        f"DELETE FROM {table} WHERE version IN {_VERSIONS}"
        for table in ("used", "generated", "invalidated")
    ),
    *(
        f"DELETE FROM {table} WHERE activity IN {_ACTIVITIES}"
        for table in ("ended", "looked", "informed", "gap")
    ),
    *(f"DELETE FROM {table} WHERE activity = ?" for table in ("ended", "gap")),
    "DELETE FROM alias WHERE execution = ?",
    "DELETE FROM version WHERE execution = ?",
    "DELETE FROM started WHERE execution = ?",
    "DELETE FROM execution WHERE id = ?",
    "DELETE FROM run WHERE id = ?",
)
"""Everything that one execution or pipeline run recorded; each takes its id. Locations
stay: other executions share them."""

VERSIONS_AT_LOCATION = (
    "SELECT id FROM version WHERE location = ? AND maker = execution"
    " UNION ALL SELECT id FROM version WHERE location = ? AND maker <> execution"
)
"""The versions at one place, found and made: each kind has an index of its own."""
