"""One task of work of a session: an execution, forked by the command of another one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from clew.run.session.task_output import TaskOutput
from clew.run.session.trace_branches import TraceBranch
from clew.witness.syscalls.trace_format import AnyRecord, Exec, Held, Hidden, Mark, Opening, Signal


@dataclass
class ForkedTask:
    """One task of work: an execution."""

    uid: str
    command: tuple[str, ...]
    """What would do it without the session."""
    pid: int
    output: TaskOutput
    ended: Callable[[ForkedTask], None]
    began: int
    name: str | None = None
    branch: TraceBranch | None = None
    lost: bool = False
    """The session ended before it did."""
    gone: float | None = None
    """Since when its process is known not to be there any more."""

    @property
    def status(self) -> int:
        """As a shell tells it."""
        exit_ = self.branch.exit if self.branch else None
        if self.lost or exit_ is None:
            return 125
        return 128 + exit_.signal if exit_.signal else exit_.status

    def stop(self, number: int) -> None:
        """Send a signal to all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        if self.branch is not None:
            self.branch.stop(number)


def trace_as_command(
    task: ForkedTask, branch: TraceBranch, run: Exec, held: Held
) -> list[AnyRecord]:
    """The records of a task as those of a command, started by its own words with what it was
    given. `run`, `held`: how the command was started that forked it."""
    spawn, *rest = branch.records
    assert spawn is branch.spawn
    assert branch.exit is not None
    seq, at, image = spawn.seq, max(spawn.at, task.began), spawn.image  # it may be forked ahead
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
    """Of a signal to the command itself, or to another of its children, only that it was sent."""
    images = {record.image for record in branch.records}

    def told(record: AnyRecord) -> AnyRecord:
        if not isinstance(record, Signal) or record.to in images:
            return record
        why = b"it signalled a process that is none of its own"
        return Hidden(record.seq, record.at, record.image, b"signal", None, why)

    return told
