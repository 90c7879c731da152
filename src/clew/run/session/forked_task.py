"""A task of a session: an execution whose process was forked by the session's command."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from clew.documents.ids import Uid
from clew.run.session.task_stdio import TaskOutput
from clew.run.session.trace_branches import TraceBranch
from clew.witness.syscalls.trace_format import AnyRecord, Exec, Held, Hidden, Mark, Opening, Signal


@dataclass
class ForkedTask:
    """One task; it is an execution of its own."""

    uid: Uid
    command: tuple[str, ...]
    """A command line that would do the same without the session."""
    pid: int
    output: TaskOutput
    ended: Callable[[ForkedTask], None]
    began: int
    name: str | None = None
    branch: TraceBranch | None = None
    lost: bool = False
    """The session ended before the task did."""
    gone: float | None = None
    """The time at which its process was first seen to be gone (monotonic seconds)."""

    @property
    def status(self) -> int:
        """The exit status as a shell reports it; 125 if the task was lost."""
        exit_ = self.branch.exit if self.branch else None
        if self.lost or exit_ is None:
            return 125
        return 128 + exit_.signal if exit_.signal else exit_.status

    def stop(self, number: int) -> None:
        """Send a signal to all processes of the task."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        if self.branch is not None:
            self.branch.stop(number)


def trace_as_command(
    task: ForkedTask, branch: TraceBranch, run: Exec, held: Held
) -> list[AnyRecord]:
    """The trace of a task, rewritten as if its own command line had been started.

    `run` and `held` are the records of how the session's command was started."""
    spawn, *rest = branch.records
    assert spawn is branch.spawn
    assert branch.exit is not None
    seq, at, image = (
        spawn.seq,
        max(spawn.at, task.began),
        spawn.image,
    )  # it may have been forked in advance
    output = next(iter(task.output.names))
    openings = [
        Opening(0, 1, os.fsencode(os.devnull), -1, 0, 0),
        *(Opening(number, 2, output, -1, 0, 0) for number in (1, 2)),
    ]
    words = [os.fsencode(word) for word in task.command]
    begun: list[AnyRecord] = [
        msgspec.structs.replace(branch.spawn, at=at, parent=0),
        msgspec.structs.replace(
            run, seq=seq, at=at, image=image, previous=image, pid=task.pid, arguments=words
        ),
        msgspec.structs.replace(held, seq=seq, at=at, image=image, openings=openings),
        Mark(seq, at, image, 0, 1, 0, 0),
    ]
    printed = task.output.capture.size
    end = Mark(branch.exit.seq, branch.exit.at, branch.root, 1, 1, printed, -1)
    return [*begun, *map(_hide_foreign_signals(branch), rest), end]


def _hide_foreign_signals(branch: TraceBranch) -> Callable[[AnyRecord], AnyRecord]:
    """Replace signals to processes outside the task by a gap: they are not part of its record."""
    images = {record.image for record in branch.records}

    def hide(record: AnyRecord) -> AnyRecord:
        if not isinstance(record, Signal) or record.to in images:
            return record
        why = b"it signalled a process outside the task"
        return Hidden(record.seq, record.at, record.image, b"signal", None, why)

    return hide
