"""Split one trace into branches: one for each child of the traced command, with its descendants.

A branch gets copies of the descriptions that it refers to, so it is a complete trace.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from clew.run.session.trace_descriptions import TraceDescriptions
from clew.witness.syscalls.trace_format import (
    AnyRecord,
    Exec,
    Exit,
    Spawn,
)


@dataclass
class TraceBranch:
    """A child of the command, with its descendants."""

    spawn: Spawn
    records: list[AnyRecord]
    root: int
    """The image (the number of a program in the trace) that its first process runs now."""
    images: list[int] = field(default_factory=list)
    living: dict[int, int] = field(default_factory=dict)
    """Process ids, by image."""
    exit: Exit | None = None
    """How its first process ended."""

    @property
    def over(self) -> bool:
        return self.exit is not None and not self.living

    def stop(self, number: int) -> None:
        """Send a signal to all living processes."""
        for pid in list(self.living.values()):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class TraceSplitter:
    """Sorts records into branches as they arrive."""

    def __init__(self) -> None:
        self.own: list[AnyRecord] = []
        """Records of the command itself that were not converted yet."""
        self.exit: Exit | None = None
        """How the command itself ended; branches may still run."""
        self._root: int | None = None
        self._of: dict[int, TraceBranch] = {}
        self.descriptions = TraceDescriptions()

    def add_records(self, records: Iterable[AnyRecord]) -> list[TraceBranch]:
        """Add records; return the branches that they belong to."""
        touched: dict[int, TraceBranch] = {}
        for record in records:
            branch = self._sort(record)
            if branch is not None:
                touched[branch.spawn.image] = branch
        return list(touched.values())

    def forget(self, branch: TraceBranch) -> None:
        """Free the memory of a branch that is no longer needed."""
        for image in branch.images:
            del self._of[image]
        branch.records.clear()

    def _sort(self, record: AnyRecord) -> TraceBranch | None:
        if self.descriptions.add(record):
            return None
        if isinstance(record, Spawn):
            return self._add_process(record)
        if isinstance(record, Exec) and record.previous in self._of:
            self._exec(self._of[record.previous], record)
        branch = self._of.get(record.image)
        if branch is None:
            self.own.append(record)
            if isinstance(record, Exit) and record.image == self._root:
                self.exit = record
            return None
        branch.records.append(record)
        if isinstance(record, Exit):
            branch.living.pop(record.image, None)
            if record.image == branch.root:
                branch.exit = record
        return branch

    def _add_process(self, record: Spawn) -> TraceBranch | None:
        if self._root is None:
            self._root = record.image
            self.own.append(record)
            return None
        branch = self._of.get(record.parent)
        if branch is None:
            branch = TraceBranch(record, [], record.image)
        branch.records.append(record)
        branch.living[record.image] = record.pid
        self._add(record.image, branch)
        return branch

    def _exec(self, branch: TraceBranch, record: Exec) -> None:
        """A process of the branch runs another program now."""
        if record.image == record.previous:
            return
        self._add(record.image, branch)
        branch.living[record.image] = branch.living.pop(record.previous, record.pid)
        if branch.root == record.previous:
            branch.root = record.image

    def _add(self, image: int, branch: TraceBranch) -> None:
        self._of[image] = branch
        branch.images.append(image)
