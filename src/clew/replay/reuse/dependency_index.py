"""Index one execution's record by path as well: who changed a path, and when."""

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

from clew.prov.locators import path_of
from clew.prov.queries.execution_record import Edge, ExecutionRecord, Version
from clew.replay.execution_index import ExecutionIndex, group

CHANGE_KINDS = ("made", "removed")
"""Kinds of `looked` events that record a change: a directory, pipe or device was made or
removed."""


class PathChange(NamedTuple):
    """A change of one path; sorts in the order of the changes."""

    at: int
    rank: int
    """Order at the same time: what is replaced goes first, what is deleted goes last."""
    path: bytes
    there: bool
    """Whether something exists at the path afterwards."""
    activity: int
    version: int | None
    mode: int
    """The mode of a directory, pipe or device, which has no version."""
    how: str
    mtime: int | None = None
    """The time that was set for a directory."""


class DependencyIndex(ExecutionIndex):
    """The record of one execution, indexed by process and by path."""

    def __init__(self, record: ExecutionRecord) -> None:
        super().__init__(record)
        self.paths = {key: path_of(v.locator) for key, v in record.versions.items()}

    @cached_property
    def use_edges(self) -> dict[int, list[Edge]]:
        """By process, all that it used, also what it wrote itself."""
        return group((edge.activity, edge) for edge in self.record.used)

    @cached_property
    def makers(self) -> dict[int, dict[int, Edge]]:
        """By version, the processes that wrote it."""
        makers: dict[int, dict[int, Edge]] = defaultdict(dict)
        for edge in self._generated:
            makers[edge.version][edge.activity] = edge
        return makers

    @cached_property
    def _generated(self) -> list[Edge]:
        """The writes, not earlier than the process: it can have continued a version that others
        began only once it existed."""
        edges = []
        for edge in self.record.generated:
            process = self.record.activities[edge.activity]
            began = process.facets.get("begun", {}).get("at", process.started)
            edges.append(edge if edge.at >= process.started else edge._replace(at=began))
        return edges

    @cached_property
    def _made(self) -> dict[bytes, list[tuple[int, int]]]:
        """By path, the versions made there, with the time."""
        edges = sorted((edge.at, edge.version) for edge in self.record.generated)
        return group((self.paths[version] or b"", (at, version)) for at, version in edges)

    def version_at(self, path: bytes, at: int) -> Version | None:
        """The version that the execution had made at this path by then, if any."""
        line = self._made.get(path, [])
        count = bisect_right(line, (at, 1 << 63))
        return self.with_content(self.record.versions[line[count - 1][1]]) if count else None

    def with_content(self, version: Version) -> Version:
        """Add the content of a version that was moved but never read: the content at its new
        name."""
        how, after = self.record.moves.get(version.key, ("", version))
        if version.digest is not None or how in ("", "metadata"):  # metadata: with another mode
            return version
        return version._replace(
            digest=after.digest, size=after.size, mode=after.mode, mtime=after.mtime
        )

    @cached_property
    def changes(self) -> dict[int, list[PathChange]]:
        """By process, the paths it changed."""
        return group((change.activity, change) for change in self._all_changes())

    @cached_property
    def _changes(self) -> dict[bytes, list[tuple[int, int]]]:
        """By path, when it was changed, and by which process."""
        changes = sorted((one.at, one.activity, one.path) for one in self._all_changes())
        return group((path, (at, activity)) for at, activity, path in changes)

    @cached_property
    def _changers(self) -> set[int]:
        return {activity for line in self._changes.values() for _, activity in line}

    @cached_property
    def _entries(self) -> dict[bytes, list[tuple[int, int]]]:
        """By directory, when a name in it came or went."""
        entries: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        for path, line in self._changes.items():
            entries[os.path.dirname(path)] += line
        for line in entries.values():
            line.sort()
        return entries

    def changed_by_others(
        self, path: bytes, since: int, until: int, members: frozenset[int]
    ) -> bool:
        """Whether another process changed this path or a directory above it."""
        if self._changers <= members:
            return False
        return any(
            _changed_by_others(self._changes.get(p, ()), since, until, members)
            for p in path_and_parents(path)
        )

    def entries_changed_by_others(
        self, directory: bytes, since: int, until: int, members: frozenset[int]
    ) -> bool:
        """Whether another process added or removed a name in this directory."""
        if self._changers <= members:
            return False
        return _changed_by_others(self._entries.get(directory, ()), since, until, members)

    def _all_changes(self) -> Iterator[PathChange]:
        for edge in self._generated:
            path = self.paths[edge.version]
            if path is not None:
                yield PathChange(edge.at, 1, path, True, edge.activity, edge.version, 0, edge.how)
        for edge in self.record.invalidated:
            path = self.paths[edge.version]
            if path is not None:
                rank = 0 if edge.how == "replace" else 2
                yield PathChange(
                    edge.at, rank, path, False, edge.activity, edge.version, 0, edge.how
                )
        for look in self.record.looked:
            if look.kind in CHANGE_KINDS:
                path = path_of(look.locator)
                mode, _, *times = look.answer.split(" ")
                if path is not None:
                    yield PathChange(
                        at=look.at,
                        rank=1 if look.kind == "made" else 2,
                        path=path,
                        there=look.kind == "made",
                        activity=look.activity,
                        version=None,
                        mode=int(mode, 8),
                        how=look.kind,
                        mtime=int(times[0]) if times else None,
                    )


@lru_cache(1 << 14)
def path_and_parents(path: bytes) -> tuple[bytes, ...]:
    """The path and every directory above it."""
    return (path, *_with_parents(os.path.dirname(path))) if len(path) > 1 else (path,)


@lru_cache(1 << 12)
def _with_parents(directory: bytes) -> tuple[bytes, ...]:
    """Cached apart from the paths: many files share a directory."""
    parents = [directory]
    while len(directory) > 1:
        directory = directory.rpartition(b"/")[0].rstrip(b"/") or b"/"
        parents.append(directory)
    return tuple(parents)


def _changed_by_others(
    line: list[tuple[int, int]] | tuple[()], since: int, until: int, members: frozenset[int]
) -> bool:
    for at, activity in line[bisect_right(line, (since, 1 << 63)) :]:
        if at > until:
            return False
        if activity not in members:
            return True
    return False
