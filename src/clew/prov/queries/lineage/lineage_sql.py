"""The SQL queries of lineage, each for many rows at once.

A *found* version is the same as the version with the same bytes that an earlier execution left
there (`origins`). An output depends on what its process used before the writing ended (`makers` and
`products` have this time). Events are ordered by their times, not by their numbers.
"""

# ruff: noqa: S608  (the only names put into SQL here are our own tables and columns)

from collections.abc import Iterable
from typing import Any, NamedTuple

from clew.db import Connection
from clew.documents.ids import Locator
from clew.prov.event_numbers import MOVES_SQL

FOREVER = 2**62
"""Later than every time: the writing may have continued to the end."""

IS_FOUND = "coalesce(v.maker, 0) = v.execution"
"""Of a version that is selected by its id: in other words than those of the index of all found
versions, which PostgreSQL would read as a whole."""
_VERSIONS = """
SELECT v.id, v.execution, v.location, v.maker, v.ordinal, v.at, l.locator, x.number,
       c.digest, c.size, c.mode, c.package, c.stored, x.made_elsewhere
FROM version v JOIN location l ON l.id = v.location JOIN execution x ON x.id = v.execution
LEFT JOIN content c ON c.version = v.id WHERE v.id IN ({})
"""
# A record made elsewhere may claim any path and any time: what was recorded here comes first.
# The order is that of the indexes `version_made` and `version_found`, and digests are compared one
# by one: a place may have a hundred thousand versions, and as many places the same content.
_MADE_EARLIER = """
  (SELECT g.id FROM version g JOIN execution gx ON gx.id = g.execution
   WHERE g.location = v.location AND g.at < v.at AND g.maker <> g.execution
   AND (SELECT gc.digest FROM content gc WHERE gc.version = g.id) = c.digest AND {}
   ORDER BY g.at DESC, g.ordinal DESC LIMIT 1)
"""
_FOUND_EARLIER = """
  (SELECT g.id FROM version g JOIN execution gx ON gx.id = g.execution
   WHERE g.location = v.location AND g.at <= v.at AND g.maker = g.execution
   AND (SELECT gc.digest FROM content gc WHERE gc.version = g.id) = c.digest AND {}
   ORDER BY g.at LIMIT 1)
"""


_PREFERRED = ", ".join(
    question.replace("{}", f"gx.made_elsewhere {test}")
    for question in (_MADE_EARLIER, _FOUND_EARLIER)
    for test in ("= 0", "<> 0")
)
_ORIGINS = f"""
SELECT v.id, coalesce({_PREFERRED})
FROM version v JOIN content c ON c.version = v.id
WHERE {IS_FOUND} AND v.id IN ({{}})
"""
_OTHER = """
SELECT 1 FROM version o JOIN execution ox ON ox.id = o.execution
WHERE o.location = v.location AND o.at < v.at
AND (ox.made_elsewhere = 0 OR vx.made_elsewhere <> 0)
"""
_CHANGED = f"""
SELECT v.id FROM version v JOIN execution vx ON vx.id = v.execution
WHERE v.id IN ({{}}) AND {IS_FOUND}
AND EXISTS (SELECT 1 FROM content c WHERE c.version = v.id)
AND (EXISTS ({_OTHER} AND o.maker = o.execution) OR EXISTS ({_OTHER} AND o.maker <> o.execution))
"""
_MADE = f"""
SELECT g.version, g.activity, g.how, CASE WHEN g.finished = 1 THEN g.at ELSE coalesce((
  SELECT min(later.at) FROM (
    SELECT i.at AS at FROM invalidated i WHERE i.version = g.version
    UNION ALL
    SELECT nv.at FROM version nv
    WHERE nv.execution = v.execution AND nv.location = v.location AND nv.ordinal > v.ordinal
  ) AS later WHERE later.at > g.at), {FOREVER}) END
FROM generated g JOIN version v ON v.id = g.version WHERE
"""
_MAKERS = _MADE + "g.version IN ({})"
_PRODUCTS = _MADE + "g.activity IN ({})"
_USES = f"""
SELECT u.activity, u.version, min(u.at), min(u.how) FROM used u
LEFT JOIN content c ON c.version = u.version
WHERE u.activity IN ({{}}) AND c.package IS NULL
AND u.how NOT IN {MOVES_SQL} GROUP BY u.activity, u.version
"""
_ALL_USES = f"""
SELECT activity, version, min(at), min(how) FROM used WHERE activity IN ({{}})
AND how NOT IN {MOVES_SQL} GROUP BY activity, version
"""
_OWNED = """
SELECT u.activity, count(DISTINCT u.version) FROM used u JOIN content c ON c.version = u.version
WHERE u.activity IN ({}) AND c.package IS NOT NULL GROUP BY u.activity
"""
# A witness may say of a rename no more than that the old name is gone.
_RENAMED = """
SELECT i.activity, i.version, min(i.at), 'renamed' FROM invalidated i
WHERE i.how = 'rename' AND i.activity IN ({}) AND NOT EXISTS (
  SELECT 1 FROM used u WHERE u.version = i.version AND u.activity = i.activity)
GROUP BY i.activity, i.version
"""
_USERS = """
SELECT activity, version, min(at), how FROM used WHERE version IN ({})
GROUP BY activity, version, how
"""
_MOVED = f"""
SELECT activity, version, at, how FROM used
WHERE how IN {MOVES_SQL} AND activity IN ({{}})
"""
_RENAMERS = """
SELECT i.activity, i.version, min(i.at), 'renamed' FROM invalidated i
WHERE i.how = 'rename' AND i.version IN ({}) AND NOT EXISTS (
  SELECT 1 FROM used u WHERE u.version = i.version AND u.activity = i.activity)
GROUP BY i.activity, i.version
"""
_SENDERS = "SELECT activity, source, at, via FROM informed WHERE activity IN ({})"
_RECEIVERS = "SELECT activity, source, at, via FROM informed WHERE source IN ({})"
# A process that never became another program has its parent's memory, as it was at its birth.
_FORKED = """
SELECT id, parent, at, 'fork' FROM started WHERE kind = 'process' AND parent <> execution
"""
_PARENTS = _FORKED + "AND coalesce(exe, '') = '' AND id IN ({})"
_CHILDREN = _FORKED + "AND exe IS NULL AND parent IN ({})"  # in words its index is made for
_FOUND_AGAIN = """
SELECT o.id, v.id FROM version o JOIN content oc ON oc.version = o.id
JOIN version v ON v.location = o.location AND v.at >= o.at AND v.maker = v.execution
JOIN content c ON c.version = v.id AND c.digest = oc.digest
WHERE o.id IN ({}) AND v.id <> o.id
"""
_ACTIVITIES = """
SELECT s.id, x.number, s.number, s.uid, s.command, s.exe, s.cwd, s.at, s.kind, s.name,
       x.made_elsewhere, s.id = s.execution AND s.kind <> 'execution',
       CASE WHEN s.kind = 'process' AND s.node IS NOT NULL THEN s.facets END
FROM started s JOIN execution x ON x.id = s.execution WHERE s.id IN ({})
"""

_GAPS = """
SELECT g.activity, s.execution, x.number, g.what, g.why, l.locator FROM gap g
JOIN started s ON s.id = g.activity JOIN execution x ON x.id = s.execution
LEFT JOIN location l ON l.id = g.location WHERE g.activity IN ({}) ORDER BY g.at
"""
_AGENTS = """
SELECT s.id, coalesce(s.agent, x.agent) FROM started s JOIN started x ON x.id = s.execution
WHERE s.id IN ({}) AND coalesce(s.agent, x.agent) <> ''
"""
_EXECUTIONS = "SELECT id, execution FROM started WHERE id IN ({})"


class Version(NamedTuple):
    """A version and what is known of its bytes."""

    key: int
    execution: int
    location: int
    maker: int
    ordinal: int
    at: int
    locator: Locator
    number: int
    digest: bytes | None
    size: int | None
    mode: int | None
    package: str | None
    stored: int | None
    made_elsewhere: int

    @property
    def found(self) -> bool:
        return self.maker == self.execution


class Edge(NamedTuple):
    """An activity and a version, and the time from (or up to) which they matter."""

    activity: int
    version: int
    at: int
    how: str


class LineageQueries:
    """One walk's view of the graph. Each version is read once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._versions: dict[int, Version] = {}

    def versions(self, keys: Iterable[int]) -> dict[int, Version]:
        wanted = set(keys)
        known = self._versions
        missing = [key for key in wanted if key not in known]
        for row in self._connection.rows_in(_VERSIONS, missing):
            known[row[0]] = Version._make(row)
        return {key: known[key] for key in wanted if key in known}

    def origins(self, keys: Iterable[int]) -> dict[int, int]:
        """For each version: the one that was made, else first found, with these bytes there."""
        wanted = list(keys)
        answer = {key: key for key in wanted}
        rows = self._connection.rows_in(_ORIGINS, wanted)
        answer.update((key, origin) for key, origin in rows if origin is not None)
        return answer

    def changed_outside(self, keys: Iterable[int]) -> set[int]:
        """Those of `keys`, versions that are their own origin, where something else was before."""
        return {row[0] for row in self._connection.rows_in(_CHANGED, keys)}

    def makers(self, versions: Iterable[int]) -> list[Edge]:
        """The activities that made them; `at` is the end of the writing."""
        return [
            Edge(activity, version, end, how)
            for version, activity, how, end in self._connection.rows_in(_MAKERS, versions)
        ]

    def products(self, activities: Iterable[int]) -> list[Edge]:
        """The versions they made; `at` as in `makers`."""
        return [
            Edge(activity, version, end, how)
            for version, activity, how, end in self._connection.rows_in(_PRODUCTS, activities)
        ]

    def uses(self, activities: Iterable[int], *, owned: bool) -> list[Edge]:
        """The versions they read, without packages' files unless `owned`; a move is not a read."""
        wanted = list(activities)
        used = self._connection.rows_in(_ALL_USES if owned else _USES, wanted)
        return list(map(Edge._make, used + self._connection.rows_in(_RENAMED, wanted)))

    def moved(self, activities: Iterable[int]) -> list[Edge]:
        """The versions they renamed, linked, exchanged or touched."""
        return [Edge(*row) for row in self._connection.rows_in(_MOVED, activities)]

    def owned(self, activities: Iterable[int]) -> dict[int, int]:
        """How many packages' files each of them used."""
        return {row[0]: int(row[1]) for row in self._connection.rows_in(_OWNED, activities)}

    def users(self, versions: Iterable[int]) -> list[Edge]:
        wanted = list(versions)
        used = self._connection.rows_in(_USERS, wanted)
        return [Edge(*row) for row in used + self._connection.rows_in(_RENAMERS, wanted)]

    def found_again(self, versions: Iterable[int]) -> dict[int, list[int]]:
        """For each origin: the later versions that are the same thing, found."""
        pairs = self._connection.rows_in(_FOUND_AGAIN, versions)
        origins = self.origins({later for _, later in pairs})
        answer: dict[int, list[int]] = {}
        for origin, later in pairs:
            if origins[later] == origin:
                answer.setdefault(origin, []).append(later)
        return answer

    def senders(self, activities: Iterable[int]) -> list[tuple[int, int, int, str]]:
        """(receiver, sender, at, via) for each of these receivers."""
        wanted = list(activities)
        rows = self._connection.rows_in(_SENDERS, wanted)
        rows += self._connection.rows_in(_PARENTS, wanted)
        return [_flow(row) for row in rows]

    def receivers(self, activities: Iterable[int]) -> list[tuple[int, int, int, str]]:
        """(receiver, sender, at, via) for each of these senders."""
        wanted = list(activities)
        rows = self._connection.rows_in(_RECEIVERS, wanted)
        return [_flow(row) for row in rows + self._connection.rows_in(_CHILDREN, wanted)]

    def gaps(self, activities: Iterable[int]) -> list[tuple[Any, ...]]:
        """(activity, execution, its number, what, why, locator) of these and their executions."""
        wanted = set(activities)
        return self._connection.rows_in(_GAPS, wanted | set(self.executions(wanted).values()))

    def executions(self, activities: Iterable[int]) -> dict[int, int]:
        """The execution that each belongs to."""
        return dict(self._connection.rows_in(_EXECUTIONS, activities))

    def agents(self, keys: Iterable[int]) -> dict[int, str]:
        """Who started each activity, or its execution, where that is known."""
        return dict(self._connection.rows_in(_AGENTS, keys))

    def activities(self, keys: Iterable[int]) -> dict[int, tuple[Any, ...]]:
        return {row[0]: row for row in self._connection.rows_in(_ACTIVITIES, keys)}


def _flow(row: tuple[Any, ...]) -> tuple[int, int, int, str]:
    return int(row[0]), int(row[1]), int(row[2]), str(row[3])
