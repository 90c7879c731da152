"""A reusable subtree: a program and its descendants, as far as other processes are concerned.

A subtree can be reused if it interacted with the rest only through files, arguments, variables, its
working directory, its output and its exit status. Then everything it depended on is a list of
dependencies, and everything it did is a set of outputs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from clew.prov.queries.execution_record import Activity, ExecutionRecord, Version
from clew.prov.queries.formats import STREAM
from clew.replay.reuse.dependency_index import DependencyIndex, PathChange, path_and_parents


class NotReusable(Exception):
    """Why a subtree cannot be reused."""


class Dependency(NamedTuple):
    """A recorded fact that must hold again."""

    at: int
    kind: str
    """bytes, or the kind of a look."""
    path: bytes
    answer: str
    version: Version | None


class Output(NamedTuple):
    """What is at a path afterwards."""

    kind: str
    """file, link, directory or gone."""
    mode: int = 0
    version: Version | None = None
    in_place: bool = True
    """Whether an existing file was written, not replaced."""
    mtime: int | None = None
    """Of a directory whose time was set."""


class InheritedFile(NamedTuple):
    """A file that it inherited open and wrote: it wrote the content from `since` on."""

    fd: int
    path: bytes
    version: Version
    since: int


@dataclass(frozen=True)
class Subtree:
    """A subtree that can be reused."""

    index: DependencyIndex
    root: Activity
    members: frozenset[int]
    started: int
    ended: int
    status: int
    dependencies: list[Dependency]
    changes: list[PathChange]
    outputs: dict[bytes, Output]
    handed: list[InheritedFile]
    printed: dict[str, tuple[int, int]]
    """The ranges of the execution's stdout and stderr that it wrote."""
    offsets: dict[int, int] = field(default_factory=dict)
    """By descriptor, its final offset in files that others continue to read."""

    @property
    def record(self) -> ExecutionRecord:
        return self.index.record

    @property
    def held(self) -> list[list[Any]]:
        held: list[list[Any]] = self.root.facets["begun"]["held"]
        return held

    @cached_property
    def first_change(self) -> dict[bytes, int]:
        """When it first changed each path."""
        first: dict[bytes, int] = {}
        for change in self.changes:
            first.setdefault(change.path, change.at)
        return first

    @cached_property
    def changes_in(self) -> dict[bytes, list[PathChange]]:
        """Its changes of names in each directory."""
        found: dict[bytes, list[PathChange]] = {}
        for change in self.changes:
            found.setdefault(os.path.dirname(change.path), []).append(change)
        return found

    def changed_before(self, path: bytes, at: int) -> bool:
        """Whether it had itself changed this path by then."""
        first = self.first_change
        return any(first.get(place, at) < at for place in path_and_parents(path))

    def stream(self, name: str) -> Version | None:
        """Everything its execution printed to a stream."""
        line = self.record.lines.get(f"{STREAM}{self.record.execution.uid}/{name}", ())
        return next((version for version in line if version.digest), None)

    @property
    def idle(self) -> float:
        """Seconds that it spent waiting."""
        last = exec_chain(self.index, self.root)[-1]
        busy = sum(last.usage.get(name, 0.0) for name in ("user_seconds", "system_seconds"))
        return max(0.0, (self.ended - self.started) / 1e9 - busy)


def exec_chain(index: DependencyIndex, root: Activity) -> list[Activity]:
    """The program and those it became by exec, in order."""
    line = [root]
    while True:
        stem, _, ordinal = line[-1].uid.rpartition("-")
        after = f"{stem}-{int(ordinal) + 1}" if ordinal.isdigit() else ""
        found = next((c for c in index.children[line[-1].key] if c.uid == after), None)
        if found is None:
            return line
        line.append(found)


def display_path(path: bytes) -> str:
    return path.decode(errors="replace")
