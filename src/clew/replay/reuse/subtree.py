"""A reusable subtree: a program and its descendants, as far as other processes are concerned.

A subtree can be reused if it interacted with the rest only through files, arguments, variables, its
working directory, its output and its exit status. Then everything it depended on is a list of
dependencies, and everything it did is a set of outputs.
"""

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from clew.prov.locators import stream_locator
from clew.prov.queries.execution_record import Activity, ExecutionRecord, Version
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
    """The state of a path afterwards."""

    kind: str
    """file, link, directory or gone."""
    mode: int = 0
    version: Version | None = None
    in_place: bool = True
    """Whether an existing file was written, not replaced."""
    mtime: int | None = None
    """The time that was set for a directory."""


class InheritedFile(NamedTuple):
    """A file that it inherited open and wrote: it wrote the content from `since` on."""

    fd: int
    path: bytes
    version: Version
    since: int


@dataclass(frozen=True)
class SubtreeScope:
    """The processes of a subtree, and the time from the start of its program to its end."""

    index: DependencyIndex
    root: Activity
    members: frozenset[int]
    started: int
    ended: int

    @property
    def record(self) -> ExecutionRecord:
        return self.index.record

    def contains(self, activity: int, at: int) -> bool:
        """Whether the subtree did this. What a forked process did before exec does not count."""
        return activity in self.members and (activity != self.root.key or at >= self.started)

    def changed_by_others(self, path: bytes, until: int | None = None) -> bool:
        until = self.ended if until is None else until
        return self.index.changed_by_others(path, self.started, until, self.members)


@dataclass(frozen=True)
class Subtree(SubtreeScope):
    """A subtree that can be reused."""

    dependencies: list[Dependency]
    changes: list[PathChange]
    status: int = 0
    outputs: dict[bytes, Output] = field(default_factory=dict)
    handed: list[InheritedFile] = field(default_factory=list)
    printed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The ranges of the execution's stdout and stderr that it wrote."""
    offsets: dict[int, int] = field(default_factory=dict)
    """By descriptor, its final offset in files that others continue to read."""

    @property
    def held(self) -> list[list[Any]]:
        held: list[list[Any]] = self.root.facets["begun"]["held"]
        return held

    @cached_property
    def first_change(self) -> dict[bytes, int]:
        """The time of its first change of each path."""
        return {change.path: change.at for change in reversed(self.changes)}

    @cached_property
    def changes_in(self) -> dict[bytes, list[PathChange]]:
        """Its changes of names in each directory."""
        changes: dict[bytes, list[PathChange]] = {}
        for change in self.changes:
            changes.setdefault(os.path.dirname(change.path), []).append(change)
        return changes

    def changed_before(self, path: bytes, at: int) -> bool:
        """Whether it had itself changed this path by then."""
        first = self.first_change
        return any(first.get(parent, at) < at for parent in path_and_parents(path))

    def stream(self, name: str) -> Version | None:
        """Everything its execution printed to a stream."""
        line = self.record.lines.get(stream_locator(self.record.execution.uid, name), ())
        return next((version for version in line if version.digest), None)

    @property
    def idle(self) -> float:
        """Seconds that it spent waiting."""
        last = self.index.exec_chain(self.root)[-1]
        busy = sum(last.usage.get(name, 0.0) for name in ("user_seconds", "system_seconds"))
        return max(0.0, (self.ended - self.started) / 1e9 - busy)


def display_path(path: bytes) -> str:
    return path.decode(errors="replace")
