"""The Pods that may have written what a Pod found on a volume, if no witness saw the files
(rule 3).

A container that mounts a claim uses the volume as a whole, and makes it unless the mount is
read-only. A volume is one node between its writers and its readers: a hundred thousand Pods on a
claim have as many edges, not their square. What reaches the node is bounded by time: a container
read what others may have written until it ended.

A container whose file accesses a node agent saw from its start to its end reads files, not the
volume. A file that it found and that has no known maker was written by a container that was not
watched: these have a node of their own.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from clew.documents.ids import Locator
from clew.prov.cluster.watch_declarations import UNWATCHED, WATCH_KINDS, WATCHED, WATCHED_TO_END
from clew.prov.graph import Graph
from clew.prov.queries.cluster.names import CLAIM_LOCATOR, ClaimBindings, claim_of, volume_of
from clew.prov.queries.lineage.lineage_sql import FOREVER, Edge, LineageQueries, Version
from clew.prov.row_keys import key_function, location_key, unpack_looks

UNSEEN: Final = "?unwatched"
"""Ends the name of the node of what unwatched containers wrote on a volume."""
MAX_ACCESSES = 200_000
"""Containers of a claim that are considered: a bound on the time this takes."""

NOBODY: Final = -1
"""The maker of a volume that stands among versions."""

_ACCESSES = f"""
SELECT a.activity, s.at, s.execution,
  coalesce((SELECT min(e.at) FROM ended e WHERE e.activity = s.id), {FOREVER}),
  coalesce((SELECT min(e.at) FROM ended e WHERE e.activity = s.execution), {FOREVER})
FROM version v JOIN {{table}} a ON a.version = v.id JOIN started s ON s.id = a.activity
JOIN execution x ON x.id = v.execution
WHERE v.location = ? AND v.maker {{test}} v.execution AND x.made_elsewhere = 0
AND s.kind = 'container' ORDER BY v.at LIMIT {MAX_ACCESSES}
"""  # noqa: S608
_WRITERS = _ACCESSES.format(table="generated", test="<>")
_READERS = _ACCESSES.format(table="used", test="=")
_LOOKS = f"""
SELECT activity, location, kind, at, also FROM looked
WHERE activity IN ({{}}) AND (kind IN {tuple(sorted(WATCH_KINDS))} OR also IS NOT NULL)
"""  # noqa: S608
_TIMES = f"""
SELECT s.id, s.at, coalesce((SELECT min(e.at) FROM ended e
  WHERE e.activity IN (s.id, s.execution)), {FOREVER})
FROM started s WHERE s.id IN ({{}})
"""  # noqa: S608


class Access(NamedTuple):
    """A container that had a volume mounted."""

    activity: int
    pod: int
    started: int
    ended: int


@dataclass(frozen=True)
class Volume:
    """A volume as a node of a lineage."""

    key: int
    locator: Locator
    """`pvc://NAMESPACE/CLAIM@VOLUME`."""
    unwatched: bool
    """Only what containers wrote whose file accesses no witness saw."""

    @property
    def id(self) -> str:
        return f"{self.locator}{UNSEEN}" if self.unwatched else self.locator

    @property
    def claim(self) -> Locator:
        return claim_of(self.locator) or self.locator

    @cached_property
    def version(self) -> Version:
        """As a version of no execution, so that a walk treats it like the others."""
        return Version(
            self.key, 0, self.key, NOBODY, 0, 0, self.locator, 0, None, None, None, None, None, 0
        )


class Accesses:
    """The containers that had claims mounted. Each claim is asked for once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.bindings = ClaimBindings(graph)
        self._known: dict[tuple[str, Locator], list[tuple[Locator, Access]]] = {}

    def writers(self, volume: Volume) -> list[Access]:
        return self._list(_WRITERS, volume)

    def readers(self, volume: Volume) -> list[Access]:
        return self._list(_READERS, volume)

    def _list(self, sql: str, volume: Volume) -> list[Access]:
        """The accesses to the volume, not those to another that its claim was bound to."""
        claim = volume.claim
        known = self._known.get((sql, claim))
        if known is None:
            place = location_key(self._graph.project_uid, claim)
            known = self._known[sql, claim] = [
                (
                    self.bindings.volume_at(claim, started),
                    Access(activity, pod, started, min(ended, pod_ended)),
                )
                for activity, started, pod, ended, pod_ended in self._graph.connection.rows(
                    sql, (place,)
                )
            ]
        return [access for locator, access in known if locator == volume.locator]


class Volumes:
    """The volumes of a graph, and who had them mounted."""

    def __init__(
        self,
        graph: Graph,
        steps: LineageQueries,
        *,
        ignore_watched: bool = False,
        accesses: Accesses | None = None,
    ) -> None:
        """`accesses`: those that are known already."""
        self._graph = graph
        self._steps = steps
        self._ignore_watched = ignore_watched
        self.accesses = Accesses(graph) if accesses is None else accesses
        self.bindings = self.accesses.bindings
        self._key = key_function(graph.project_uid, "volume")
        self._known: dict[int, Volume] = {}
        self._writers: dict[int, list[Access]] = {}
        self._readers: dict[int, dict[bool, list[Access]]] = {}
        self._times: dict[int, tuple[int, int]] = {}
        self._watched: dict[int, set[int]] = {}
        """By container, the claims on which all its file accesses were seen."""

    def get(self, key: int) -> Volume | None:
        return self._known.get(key)

    def volume(self, locator: Locator, *, unwatched: bool = False) -> Volume:
        found = Volume(self._key(f"{locator}\0{unwatched}"), locator, unwatched)
        return self._known.setdefault(found.key, found)

    def at(self, claim: Locator, at: int) -> Volume:
        """The volume that a claim was bound to at a time."""
        return self.volume(self.bindings.volume_at(claim, at))

    def of_file(self, locator: Locator, *, unwatched: bool) -> Volume | None:
        found = volume_of(locator)
        return None if found is None else self.volume(found, unwatched=unwatched)

    def writers(self, volume: Volume, *, before: int, last: int | None = None) -> list[Access]:
        """The containers that had it writable and started until a time, in that order; at most the
        `last` ones."""
        found = self._list_writers(volume)
        end = bisect_right(found, before, key=lambda access: access.started)
        return found[0 if last is None else max(end - last, 0) : end]

    def has_writers(self, volume: Volume, *, before: int, but: int) -> bool:
        """Whether there is any such writer but this container."""
        first = self._list_writers(volume)[:2]
        return any(access.started <= before and access.activity != but for access in first)

    def readers(
        self, volume: Volume, *, after: int, watched: bool = False, most: int | None = None
    ) -> list[Access]:
        """The containers that had it and did not end before a time, in the order of their ends, at
        most so many: those that were watched there, or that were not."""
        found = self._list_readers(volume, watched)
        start = bisect_left(found, after, key=lambda access: access.ended)
        return found[start : None if most is None else start + most]

    def has_readers(self, volume: Volume, *, after: int, watched: bool, but: int) -> bool:
        """Whether there is any such reader but this container."""
        latest = self._list_readers(volume, watched)[-2:]
        return any(access.ended >= after and access.activity != but for access in latest)

    def reads(self, edges: Iterable[Edge], versions: dict[int, Version]) -> list[tuple[Edge, int]]:
        """The uses of volumes as a whole among these, by containers that were not watched there;
        and the time until when each read."""
        whole = [edge for edge in edges if is_whole(versions[edge.version])]
        watched = self.watched({edge.activity for edge in whole})
        unwatched = [
            edge
            for edge in whole
            if versions[edge.version].location not in watched.get(edge.activity, ())
        ]
        times = self.times({edge.activity for edge in unwatched})
        return [(edge, times.get(edge.activity, (0, FOREVER))[1]) for edge in unwatched]

    def accessed(self, edge: Edge, version: Version) -> Volume:
        """The volume that a use of a claim as a whole was of: no container starts before its claims
        are bound."""
        started = self.times([edge.activity]).get(edge.activity, (version.at, 0))[0]
        return self.at(version.locator, started)

    def times(self, activities: Iterable[int]) -> dict[int, tuple[int, int]]:
        """When containers started and ended."""
        if missing := {key for key in activities if key not in self._times}:
            for key, start, end in self._graph.connection.rows_in(_TIMES, missing):
                self._times[key] = start, end
        return self._times

    def watched(self, activities: Collection[int]) -> dict[int, set[int]]:
        """The claims (rows of locations) on which all file accesses of a container were seen, until
        it ended or until now."""
        missing = {key for key in activities if key not in self._watched}
        self._watched.update((key, set()) for key in missing)
        if self._ignore_watched:
            return self._watched
        times = self.times(missing)
        for key, looks in self._list_looks(missing).items():
            seen = looks[WATCHED] - looks[UNWATCHED]
            running = key in times and times[key][1] == FOREVER
            self._watched[key] = seen if running else seen & looks[WATCHED_TO_END]
        return self._watched

    def _list_looks(self, activities: Collection[int]) -> dict[int, dict[str, set[int]]]:
        """By container and kind, the claims of which a witness declared that. One that began to
        watch after the start did not see everything."""
        found: dict[int, dict[str, set[int]]] = {}
        times = self.times(activities)
        for key, place, kind, at, also in self._graph.connection.rows_in(_LOOKS, activities):
            looks = [(kind, place)]
            if also:
                looks += ((what, where) for what, where, _ in unpack_looks(also))
            kinds = found.setdefault(key, {kind: set() for kind in WATCH_KINDS})
            for what, where in looks:
                late = what == WATCHED and (key not in times or at > times[key][0])
                if what in WATCH_KINDS and not late:
                    kinds[what].add(where)
        return found

    def _list_writers(self, volume: Volume) -> list[Access]:
        if volume.key not in self._writers:
            found = self.accesses.writers(volume)
            if volume.unwatched:
                found = self._split_by_watch(volume, found)[False]
            self._writers[volume.key] = sorted(found, key=lambda access: access.started)
        return self._writers[volume.key]

    def _list_readers(self, volume: Volume, watched: bool) -> list[Access]:
        if volume.key not in self._readers:
            parts = self._split_by_watch(volume, self.accesses.readers(volume))
            for part in parts.values():
                part.sort(key=lambda access: access.ended)
            self._readers[volume.key] = parts
        return self._readers[volume.key][watched]

    def _split_by_watch(self, volume: Volume, accesses: list[Access]) -> dict[bool, list[Access]]:
        place = location_key(self._graph.project_uid, volume.claim)
        watched = self.watched({access.activity for access in accesses})
        parts: dict[bool, list[Access]] = {False: [], True: []}
        for access in accesses:
            parts[place in watched[access.activity]].append(access)
        return parts


def is_whole(version: Version) -> bool:
    """Whether it is a claim as a whole, by its name at the time."""
    return CLAIM_LOCATOR.fullmatch(version.locator) is not None
