"""The output of running tasks, for readers in other processes.

The file that stores a task's output gets a second name in the spool directory of the run, until the
task is in the graph. It has the same bytes at the same offsets as the stored log: secrets are
masked.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from clew.documents.ids import Uid
from clew.documents.pipelines.runs import LogPart

if TYPE_CHECKING:
    from clew.pipelines.tasks.attempt import OnOutput

MAX_BYTES = 1 << 18
"""The limit for one `LogPart`."""


class LiveLogs:
    """The logs of the running tasks of one run."""

    def __init__(self, spool: Path) -> None:
        """`spool`: the directory that a run has while it is performed."""
        self._spool = spool
        self._last: dict[str, Path] = {}

    def publish(self, task: str) -> OnOutput:
        """A callback that makes the output of an attempt readable in place of the one before."""
        return partial(self._link, task)

    def _link(self, task: str, execution: Uid, file: Path) -> None:
        name = self._spool / f"{_prefix(task)}{execution}"
        with suppress(OSError):  # a file system without links: the log can be read when stored
            os.link(file, name)
        before, self._last[task] = self._last.get(task), name
        if before is not None:
            before.unlink(missing_ok=True)

    def finish(self, task: str) -> Path | None:
        """The name to remove when the task is in the graph."""
        return self._last.pop(task, None)

    def read(self, task: str, offset: int) -> LogPart | None:
        """The output so far of a task, from `offset` on; None if it is not running."""
        found = self.find(task)
        if found is None:
            return None
        with suppress(FileNotFoundError), open(found, "rb") as file:
            file.seek(offset)
            attempt = found.name.rpartition("-")[2]
            return LogPart(data=file.read(MAX_BYTES), complete=False, attempt=attempt)
        return None

    def find(self, task: str) -> Path | None:
        """The file with the output so far of a task; None if it is not running. Its name ends with
        the uid of the attempt."""
        try:
            names = os.listdir(self._spool)
        except FileNotFoundError:
            return None
        found = next((name for name in names if name.startswith(_prefix(task))), None)
        return None if found is None else self._spool / found


def _prefix(task: str) -> str:
    """The beginning of the file name; a hash, since the name of a task may be too long."""
    return f"log-{blake3(task.encode()).hexdigest(16)}-"
