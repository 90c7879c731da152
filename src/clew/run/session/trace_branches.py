"""One trace, told apart by the children of the traced command: each with all that came of it.

What programs see is described once for all of them, and named by a number after that; so are
their variables. A branch gets back the descriptions that it speaks of, and is a trace by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter

from clew.witness.syscalls.trace_format import (
    AnyRecord,
    Exec,
    Exit,
    Look,
    Open,
    Seen,
    Spawn,
    Variables,
    ordered,
)


@dataclass
class TraceBranch:
    """A child of the command."""

    spawn: Spawn
    records: list[AnyRecord]
    root: int
    """The image that its first process runs now."""
    images: list[int] = field(default_factory=list)
    living: dict[int, int] = field(default_factory=dict)
    """Process ids, by image."""
    exit: Exit | None = None
    """How its first process ended."""

    @property
    def over(self) -> bool:
        return self.exit is not None and not self.living

    def stop(self, number: int) -> None:
        """Send a signal to all that live."""
        for pid in list(self.living.values()):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class TraceSplitter:
    """Sorts records as they come."""

    def __init__(self) -> None:
        self.own: list[AnyRecord] = []
        """Those of the command itself, until they are told."""
        self.exit: Exit | None = None
        """How the command itself ended; its branches may go on."""
        self._root: int | None = None
        self._of: dict[int, TraceBranch] = {}
        self._described: dict[int, Open | Look] = {}
        self._variables: dict[int, Variables] = {}

    def take(self, records: Iterable[AnyRecord]) -> list[TraceBranch]:
        """The branches that these records say something of, each once."""
        touched: dict[int, TraceBranch] = {}
        for record in records:
            branch = self._sorted(record)
            if branch is not None:
                touched[branch.spawn.image] = branch
        return list(touched.values())

    def forget(self, branch: TraceBranch) -> None:
        """It is over, and nothing more will be asked of it."""
        for image in branch.images:
            del self._of[image]
        branch.records.clear()

    def trace(self, records: list[AnyRecord]) -> list[AnyRecord]:
        """These records in their order, with the descriptions that they speak of."""
        numbers: set[int] = set()
        variables: set[int] = set()
        for record in records:
            if isinstance(record, Seen):
                numbers.update(record.opened[1::2], record.looked)
            elif isinstance(record, Exec):
                variables.add(record.variables)
        found: list[AnyRecord] = [self._described[number] for number in sorted(numbers)]
        found += [self._variables[n] for n in sorted(variables) if n in self._variables]
        return sorted([*found, *ordered(records)], key=attrgetter("seq"))

    def _sorted(self, record: AnyRecord) -> TraceBranch | None:
        if isinstance(record, Variables):
            self._variables[record.number] = record
            return None
        if record.image == 0:
            if isinstance(record, Open | Look):
                self._described[record.number] = record
            return None
        if isinstance(record, Spawn):
            return self._born(record)
        if isinstance(record, Exec) and record.previous in self._of:
            self._becomes(self._of[record.previous], record)
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

    def _born(self, record: Spawn) -> TraceBranch | None:
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

    def _becomes(self, branch: TraceBranch, record: Exec) -> None:
        """A process of it runs another program now."""
        if record.image == record.previous:
            return
        self._add(record.image, branch)
        branch.living[record.image] = branch.living.pop(record.previous, record.pid)
        if branch.root == record.previous:
            branch.root = record.image

    def _add(self, image: int, branch: TraceBranch) -> None:
        self._of[image] = branch
        branch.images.append(image)
