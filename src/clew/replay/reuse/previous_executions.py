"""Recorded executions, kept in memory while one repeat checks many programs."""

import os
from collections.abc import Sequence

from clew.errors import ClewError
from clew.prov.graph import Graph
from clew.prov.queries.execution_record import Activity, ExecutionRecord, load_record
from clew.prov.queries.same_command import find_same_command
from clew.replay.reuse.dependency_index import DependencyIndex
from clew.replay.reuse.start_match import ProgramStart
from clew.replay.reuse.subtree import NotReusable, Subtree
from clew.replay.reuse.subtree_analysis import analyze_subtree
from clew.replay.sandbox.initial_files import ReadListing, find_initial_files


class PreviousExecution:
    """One recorded execution."""

    def __init__(self, record: ExecutionRecord, read_listing: ReadListing) -> None:
        self.record = record
        self.index = DependencyIndex(record)
        self._read_listing = read_listing
        self._units: dict[int, Subtree | NotReusable] = {}
        self._children: dict[bytes, set[bytes]] | None = None
        self._entries: dict[bytes, list[tuple[int, int, bytes, bool]]] | None = None

    def subtree(self, process: Activity) -> Subtree:
        """The subtree of a process; NotAlone where it does not stand for itself."""
        subtree = self._units.get(process.key)
        if subtree is None:
            try:
                subtree = analyze_subtree(self.index, process)
            except NotReusable as why:
                subtree = why
            self._units[process.key] = subtree
        if isinstance(subtree, NotReusable):
            raise subtree
        return subtree

    def names_at(self, directory: bytes, at: int) -> set[bytes]:
        """The names that the execution knew in a directory at a time."""
        if self._children is None:
            self._children = {}
            for path in find_initial_files(self.record, self._read_listing).entries:
                place, name = os.path.split(path)
                self._children.setdefault(place, set()).add(name)
        if self._entries is None:
            self._entries = {}
            for changes in self.index.changes.values():
                for change in changes:
                    place, name = os.path.split(change.path)
                    line = self._entries.setdefault(place, [])
                    line.append((change.at, change.rank, name, change.there))
            for line in self._entries.values():
                line.sort()
        names = set(self._children.get(directory, ()))
        for when, _, name, there in self._entries.get(directory, ()):
            if when < at:
                names = names | {name} if there else names - {name}
        return names


class PreviousExecutions:
    """All recorded executions, each read when first needed."""

    def __init__(self, graph: Graph, reference: ExecutionRecord, read_listing: ReadListing) -> None:
        self._graph = graph
        self._read_listing = read_listing
        self.reference = PreviousExecution(reference, read_listing)
        self._known: dict[str, PreviousExecution | None] = {reference.execution.uid: self.reference}

    def alike(self, start: ProgramStart) -> list[tuple[PreviousExecution, Activity]]:
        """Processes that were started with the same command; those of the reference first."""
        reference = self.reference.record.execution.uid
        candidates = find_same_command(
            self._graph, start.program, start.command, start.cwd, believed=reference
        )
        candidates.sort(key=lambda candidate: candidate[0] != reference)
        alike = []
        for uid, key in candidates:
            execution = self._past(uid)
            if execution is not None and key in execution.record.activities:
                alike.append((execution, execution.record.activities[key]))
        return alike

    def _past(self, uid: str) -> PreviousExecution | None:
        if uid not in self._known:
            try:
                self._known[uid] = PreviousExecution(
                    load_record(self._graph, uid), self._read_listing
                )
            except ClewError:  # forgotten meanwhile
                self._known[uid] = None
        return self._known[uid]

    def nearest(self, start: ProgramStart) -> str:
        """How this start differs from the most similar one of the reference."""
        same = [
            process
            for process in self.reference.record.processes
            if process.cwd == start.cwd and _program(process) == start.program
        ]
        ways = (_changed_words(process.command, start.command) for process in same)
        best = min(ways, key=len, default=None)
        if best is None or len(best) > max(1, len(start.command) // 2):
            return "never ran before"
        return f"its argument {best[0]} changed"


def _program(process: Activity) -> str | None:
    program: str | None = process.facets.get("begun", {}).get("program", process.exe)
    return program


def _changed_words(then: Sequence[str], now: Sequence[str]) -> list[int]:
    numbers = [n for n, (a, b) in enumerate(zip(then, now, strict=False)) if a != b]
    short, long = sorted((len(then), len(now)))
    return numbers + list(range(short, long))
