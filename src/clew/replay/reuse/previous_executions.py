"""Recorded executions, kept in memory while one repeat checks many programs."""

import itertools
import os
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from clew.documents.ids import Uid
from clew.errors import ClewError
from clew.prov.graph import Graph
from clew.prov.queries.execution_record import Activity, ExecutionRecord, load_record
from clew.prov.queries.same_command import find_same_command
from clew.replay.reuse.dependency_index import DependencyIndex, PathChange
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
        self._subtrees: dict[int, Subtree | NotReusable] = {}

    def subtree(self, process: Activity) -> Subtree:
        """The subtree of a process; raises NotReusable."""
        subtree = self._subtrees.get(process.key)
        if subtree is None:
            try:
                subtree = analyze_subtree(self.index, process)
            except NotReusable as why:
                subtree = why
            self._subtrees[process.key] = subtree
        if isinstance(subtree, NotReusable):
            raise subtree
        return subtree

    @cached_property
    def _initial_names(self) -> dict[bytes, set[bytes]]:
        """By directory, the names that the execution found."""
        names = defaultdict[bytes, set[bytes]](set)
        for path in find_initial_files(self.record, self._read_listing).entries:
            directory, name = os.path.split(path)
            names[directory].add(name)
        return names

    @cached_property
    def _name_changes(self) -> dict[bytes, list[PathChange]]:
        """By directory, the changes of names in it, in order."""
        changes = defaultdict[bytes, list[PathChange]](list)
        for change in itertools.chain.from_iterable(self.index.changes.values()):
            changes[os.path.dirname(change.path)].append(change)
        for line in changes.values():
            line.sort(key=lambda change: (change.at, change.rank, change.path, change.there))
        return changes

    def names_at(self, directory: bytes, at: int) -> set[bytes]:
        """The names that the execution knew in a directory at a time."""
        names = set(self._initial_names.get(directory, ()))
        for change in self._name_changes.get(directory, ()):
            if change.at < at:
                name = os.path.basename(change.path)
                names = names | {name} if change.there else names - {name}
        return names


class PreviousExecutions:
    """All recorded executions, each read when first needed."""

    def __init__(self, graph: Graph, reference: ExecutionRecord, read_listing: ReadListing) -> None:
        self._graph = graph
        self._read_listing = read_listing
        self.reference = PreviousExecution(reference, read_listing)
        self._known: dict[str, PreviousExecution | None] = {reference.execution.uid: self.reference}

    def find_same_start(self, start: ProgramStart) -> list[tuple[PreviousExecution, Activity]]:
        """Processes that were started with the same command; those of the reference first."""
        reference = self.reference.record.execution.uid
        candidates = find_same_command(
            self._graph, start.program, start.command, start.cwd, believed=reference
        )
        candidates.sort(key=lambda candidate: candidate[0] != reference)
        find_same_start = []
        for uid, key in candidates:
            execution = self._load(uid)
            if execution is not None and key in execution.record.activities:
                find_same_start.append((execution, execution.record.activities[key]))
        return find_same_start

    def _load(self, uid: Uid) -> PreviousExecution | None:
        if uid not in self._known:
            try:
                record = load_record(self._graph, uid)
                self._known[uid] = PreviousExecution(record, self._read_listing)
            except ClewError:  # removed meanwhile
                self._known[uid] = None
        return self._known[uid]

    def describe_difference(self, start: ProgramStart) -> str:
        """How this start differs from the most similar one of the reference."""
        same = [
            process
            for process in self.reference.record.processes
            if process.cwd == start.cwd and _program(process) == start.program
        ]
        changes = (_changed_words(process.command, start.command) for process in same)
        best = min(changes, key=len, default=None)
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
