"""Which write a read in a cluster saw, where the digests do not tell (rule 2).

`LineageQueries.origins` links a found version to the one with the same digest, as everywhere. In a
cluster digests are often missing: a Secret has none, and a file may be too large to hash. Then it
is the latest earlier version at the place, by the time its writing ended: this is inferred.
Versions of ConfigMaps and Secrets are made by requests, which are executions of their own, so the
general query takes them for found ones.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable
from typing import NamedTuple

from clew.documents.ids import Locator
from clew.prov.graph import Graph
from clew.prov.queries.cluster.names import IMAGE, OBJECT_SCHEMES
from clew.prov.queries.lineage.lineage_sql import IS_FOUND, LineageQueries, Version

_NEAR = 20
"""Writings of a place that are compared: of those that overlap, the one that ended last counts."""
_BY_TIME = f"""
SELECT v.id, (
  SELECT w.id FROM (
    SELECT g.id AS id, (SELECT max(e.at) FROM generated e WHERE e.version = g.id) AS ended
    FROM version g JOIN execution gx ON gx.id = g.execution
    LEFT JOIN content gc ON gc.version = g.id
    WHERE g.location = v.location AND g.at <= v.at AND g.maker <> g.execution
    AND gx.made_elsewhere = 0 AND (gc.digest IS NULL OR c.digest IS NULL)
    ORDER BY g.at DESC LIMIT {_NEAR}
  ) AS w WHERE w.ended <= v.at ORDER BY w.ended DESC, w.id LIMIT 1)
FROM version v JOIN started s ON s.id = v.execution LEFT JOIN content c ON c.version = v.id
WHERE v.id IN ({{}}) AND {IS_FOUND} AND s.kind = 'pod'
"""  # noqa: S608
# Found and made versions have an index each, and a place may have been found a million times.
_FOUND_LATER = """
SELECT v.id FROM version o JOIN version v ON v.location = o.location AND v.at >= o.at
AND v.maker = v.execution JOIN started s ON s.id = v.execution
WHERE o.id IN ({}) AND s.kind = 'pod' AND v.id <> o.id
"""
_OBJECTS = """
SELECT v.location, v.at, v.id, c.digest FROM version v JOIN generated g ON g.version = v.id
JOIN execution x ON x.id = v.execution LEFT JOIN content c ON c.version = v.id
WHERE v.location IN ({}) AND v.maker = v.execution AND x.made_elsewhere = 0
"""
_FIRST = """
SELECT l.id, (
  SELECT g.id FROM version g JOIN execution gx ON gx.id = g.execution
  WHERE g.location = l.id AND g.maker = g.execution AND gx.made_elsewhere = 0
  ORDER BY g.at LIMIT 1)
FROM location l WHERE l.id IN ({})
"""


class Origin(NamedTuple):
    """The version that a read saw."""

    key: int
    inferred: bool


class ReadOrigins:
    """Finds the origins of versions that Pods found; and of all others, as everywhere."""

    def __init__(self, graph: Graph, steps: LineageQueries) -> None:
        self._connection = graph.connection
        self._steps = steps
        self._objects: dict[int, list[tuple[int, int, bytes | None]]] = {}
        self._made_objects: set[int] = set()

    def find(self, versions: Collection[Version]) -> dict[int, Origin]:
        """The origin of each of these: itself, if it has no known maker."""
        objects = [v for v in versions if is_object(v.locator)]
        images = [v for v in versions if v.locator.startswith(IMAGE)]
        others = [v for v in versions if not v.locator.startswith((IMAGE, *OBJECT_SCHEMES))]
        answer = self._find_objects(objects) | self._find_images(images)
        by_digest = self._steps.origins(version.key for version in others)
        made = self._steps.versions(key for v, key in by_digest.items() if key != v)
        alone = [v.key for v in others if v.found and _is_found(made, v, by_digest[v.key])]
        by_time = {
            found: origin
            for found, origin in self._connection.rows_in(_BY_TIME, alone)
            if origin is not None
        }
        for version in others:
            inferred = by_time.get(version.key)
            key = by_digest[version.key] if inferred is None else inferred
            answer[version.key] = Origin(key, inferred is not None)
        return answer

    def found_again(self, versions: Iterable[Version]) -> dict[int, list[Origin]]:
        """For each of these: the versions that Pods found later, and that are the same."""
        wanted = {version.key for version in versions}
        rows = self._connection.rows_in(_FOUND_LATER, wanted)
        later = self._steps.versions({key for (key,) in rows})
        answer: dict[int, list[Origin]] = {}
        for key, origin in self.find(later.values()).items():
            if origin.key in wanted:
                answer.setdefault(origin.key, []).append(Origin(key, origin.inferred))
        return answer

    def _find_images(self, versions: Collection[Version]) -> dict[int, Origin]:
        """An image is the same wherever it was used: its place names its content."""
        first: dict[int, int | None] = dict(
            self._connection.rows_in(_FIRST, {version.location for version in versions})
        )
        return {v.key: Origin(first.get(v.location) or v.key, inferred=False) for v in versions}

    def _find_objects(self, versions: Collection[Version]) -> dict[int, Origin]:
        places = {version.location for version in versions} - self._objects.keys()
        self._objects.update((place, []) for place in places)
        for place, at, key, digest in self._connection.rows_in(_OBJECTS, places):
            self._objects[place].append((at, key, None if digest is None else bytes(digest)))
            self._made_objects.add(key)
        for place in places:
            self._objects[place].sort()
        return {version.key: self._find_object(version) for version in versions}

    def _find_object(self, version: Version) -> Origin:
        if version.key in self._made_objects:
            return Origin(version.key, inferred=False)
        made = self._objects[version.location]
        last = bisect_right(made, version.at, key=lambda one: one[0])
        unknown = None
        for position in range(last - 1, -1, -1):
            _, key, digest = made[position]
            if digest is not None and digest == version.digest:
                return Origin(key, inferred=False)
            if unknown is None and (digest is None or version.digest is None):
                unknown = key
                if version.digest is None:
                    break
        return Origin(version.key if unknown is None else unknown, unknown is not None)


def is_object(locator: Locator) -> bool:
    return locator.startswith(OBJECT_SCHEMES)


def _is_found(made: dict[int, Version], version: Version, origin: int) -> bool:
    return origin == version.key or made[origin].found
