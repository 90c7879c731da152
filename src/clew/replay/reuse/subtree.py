"""The subtree of reuse: a program and all that came of it, as far as the rest of its run goes.

A subtree of processes can stand for itself if it met the rest only through files, words,
variables, its working folder, what it printed and its status. Then all it depended on is a list
of dependencies, facts that must hold again, and all it did is what it left. Decided from the record
alone; where the record cannot tell, it is no subtree, and why is said.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from clew.prov.queries.execution_record import Activity, ExecutionRecord, Version
from clew.prov.queries.formats import STREAM
from clew.replay.reuse.dependency_index import DependencyIndex, PathChange, path_and_parents

MACHINE = (b"/proc/", b"/sys/", b"/dev/")
"""The machine's own: no facts that a run could be repeated from."""


class NotReusable(Exception):
    """Why a subtree cannot stand for itself."""


class Dependency(NamedTuple):
    """Something that must be so again."""

    at: int
    kind: str
    """bytes, or the kind of a look."""
    path: bytes
    answer: str
    version: Version | None


class Output(NamedTuple):
    """What is at a path afterwards."""

    kind: str
    """file, link, folder or gone."""
    mode: int = 0
    version: Version | None = None
    in_place: bool = True
    """A file that was there before was written, not replaced."""
    mtime: int | None = None
    """Of a folder whose time was set."""


class InheritedFile(NamedTuple):
    """A file that it was given open, and wrote: what it wrote is the content from `since` on."""

    fd: int
    path: bytes
    version: Version
    since: int


@dataclass(frozen=True)
class Subtree:
    """A subtree that stands for itself."""

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
    """Which bytes of the run's output are its own."""
    offsets: dict[int, int] = field(default_factory=dict)
    """By descriptor, how far it got in files that others read on."""

    @property
    def record(self) -> ExecutionRecord:
        return self.index.record

    @property
    def held(self) -> list[list[Any]]:
        held: list[list[Any]] = self.root.facets["begun"]["held"]
        return held

    @cached_property
    def first_change(self) -> dict[bytes, int]:
        """When it first did something to a path."""
        first: dict[bytes, int] = {}
        for change in self.changes:
            first.setdefault(change.path, change.at)
        return first

    @cached_property
    def changes_in(self) -> dict[bytes, list[PathChange]]:
        """By folder, what it did to names in it."""
        found: dict[bytes, list[PathChange]] = {}
        for change in self.changes:
            found.setdefault(os.path.dirname(change.path), []).append(change)
        return found

    def changed_before(self, path: bytes, at: int) -> bool:
        """Whether what is at this path at this moment is of its own making."""
        first = self.first_change
        return any(first.get(place, at) < at for place in path_and_parents(path))

    def stream(self, name: str) -> Version | None:
        """All that its run printed there."""
        line = self.record.lines.get(f"{STREAM}{self.record.execution.uid}/{name}", ())
        return next((version for version in line if version.digest), None)

    @property
    def idle(self) -> float:
        """Seconds in which it did nothing but wait."""
        last = exec_chain(self.index, self.root)[-1]
        busy = sum(last.usage.get(name, 0.0) for name in ("user_seconds", "system_seconds"))
        return max(0.0, (self.ended - self.started) / 1e9 - busy)


def exec_chain(index: DependencyIndex, root: Activity) -> list[Activity]:
    """The program and those it became, one after the other."""
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
