"""Split one trace into the steps that the traced command itself marks, as the cells of a notebook.

A step holds what the command and the processes that it started during the step did. As in
`trace_branches`, a step gets copies of the descriptions that it refers to.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from clew.run.session.trace_descriptions import TraceDescriptions
from clew.witness.syscalls.trace_format import (
    AnyRecord,
    Change,
    Exec,
    Exit,
    Held,
    Hidden,
    Mark,
    Open,
    Opening,
    Seen,
    Signal,
    Spawn,
    Step,
)

_BEGIN, _END = b"begin-", b"end-"


@dataclass
class TraceStep:
    """One step of the command."""

    name: str
    begin: Step
    end: Step | None = None
    records: list[AnyRecord] = field(default_factory=list)
    images: set[int] = field(default_factory=set)
    """The command and the processes of this step, by image."""
    replaced: list[bytes] = field(default_factory=list)
    """Files that it wrote, whether or not they were there; known when it has ended."""
    disturbed: bool = False
    """A process of an earlier step did something meanwhile."""


class StepSplitter:
    """Sorts records into steps as they arrive."""

    def __init__(self) -> None:
        self.own: list[AnyRecord] = []
        """What the command did outside of all steps."""
        self.exit: Exit | None = None
        self._spawn: Spawn | None = None
        self._exec: Exec | None = None
        self._held: Held | None = None
        self._root = 0
        self._step: TraceStep | None = None
        self.descriptions = TraceDescriptions()

    @property
    def pid(self) -> int | None:
        """The process id of the command, once the trace names it."""
        return self._spawn.pid if self._spawn else None

    def add_records(self, records: Iterable[AnyRecord]) -> list[TraceStep]:
        """Add records; return the steps that have ended with them."""
        ended = []
        for record in records:
            if isinstance(record, Step):
                step = self._mark(record)
                if step is not None:
                    ended.append(step)
            else:
                self._sort(record)
        return ended

    def trace_as_command(self, step: TraceStep) -> list[AnyRecord]:
        """The trace of a step, as if the command had been started for it and had ended with it."""
        assert self._spawn and self._exec and self._held and step.end
        seq, at, image = step.begin.seq, step.begin.at, self._root
        end, replace = step.end, msgspec.structs.replace
        files = [Opening(number, way, b"/dev/null", -1, 0, 0) for number, way in _NO_STREAMS]
        return self.descriptions.complete(
            [
                replace(self._spawn, seq=seq, at=at, parent=0, started=at),
                replace(self._exec, seq=seq, at=at, image=image, previous=image),
                replace(self._held, seq=seq, at=at, image=image, openings=files),
                Mark(seq, at, image, 0, 1, 0, 0),
                *(_hide_foreign_signal(record, step) for record in step.records),
                Mark(end.seq, end.at, image, 1, 1, 0, 0),
                Exit(end.seq, end.at, image, 0, 0, 0, 0, 0),
            ]
        )

    def find_replaced(self, step: TraceStep) -> list[bytes]:
        """Files that the step only opened to write them from their beginning: whether they were
        there before makes no difference to it."""
        opened: dict[bytes, bool] = {}
        touched: set[bytes | None] = set()
        for record in step.records:
            if isinstance(record, Open):
                opened.setdefault(record.real or record.path, _replaces(record.flags))
            elif isinstance(record, Seen):
                for number in (*record.opened[1::2], *record.looked):
                    seen = self.descriptions.file(number)
                    touched |= {seen.path, seen.real if isinstance(seen, Open) else None}
            elif isinstance(record, Change):
                touched |= {record.path, record.path2}
        return [path for path, replaces in opened.items() if replaces and path not in touched]

    def _mark(self, record: Step) -> TraceStep | None:
        if record.name.startswith(_BEGIN):
            name = record.name.removeprefix(_BEGIN).decode(errors="replace")
            self._step = TraceStep(name, record, images={self._root})
            return None
        step, self._step = self._step, None
        if step is None or record.name != _END + step.name.encode():
            return None
        step.end = record
        step.replaced = self.find_replaced(step)
        return step

    def _sort(self, record: AnyRecord) -> None:
        if self.descriptions.add(record):
            return
        self._note_start(record)
        step = self._step
        if step is None:
            self.own.append(record)
        elif record.image in step.images:
            step.records.append(record)
        elif not isinstance(record, Exit):
            step.disturbed = True

    def _note_start(self, record: AnyRecord) -> None:
        """Remember how the command was started, and which processes belong to the step."""
        if not self._root and isinstance(record, Spawn):
            self._spawn, self._root = record, record.image
        elif record.image == self._root:
            if isinstance(record, Exec):
                self._exec = record
            elif isinstance(record, Held):
                self._held = record
            elif isinstance(record, Exit):
                self.exit = record
        if self._step is None:
            return
        images = self._step.images
        if isinstance(record, Spawn | Exec):
            before = record.parent if isinstance(record, Spawn) else record.previous
            if before in images:
                images.add(record.image)


def _replaces(flags: int) -> bool:
    return bool(flags & os.O_CREAT and flags & os.O_TRUNC) and not flags & os.O_EXCL


_NO_STREAMS = ((0, 1), (1, 2), (2, 2))
"""The descriptors of a step, with how they are used: what it prints goes through the command."""


def _hide_foreign_signal(record: AnyRecord, step: TraceStep) -> AnyRecord:
    """Replace a signal to a process outside the step by a gap: it is no part of its record."""
    if not isinstance(record, Signal) or record.to in step.images:
        return record
    why = b"it signalled a process that is not its own"
    return Hidden(record.seq, record.at, record.image, b"signal", None, why)
