"""What tasks print while they run, for whoever asks from another process.

The copy that is kept of a task's output gets a second name in the directory of its run, and has it
until the graph tells of the task. So it can be read at any moment, and always the same bytes are
at the same place: masked, as they will be in the store.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

MOST = 1 << 18
"""Bytes of one piece."""

Heard = Callable[[str, Path], None]
"""Told, when a try begins, of its execution's uid, and of the file where its output is kept."""


class Said(NamedTuple):
    """A piece of what a task printed."""

    data: bytes
    over: bool
    """There will be no more."""
    attempt: str
    """The uid of the execution that printed it; empty where there is none at the moment. Another
    one is another try, whose output has a beginning of its own."""


class Sayings:
    """Those of the tasks of one run."""

    def __init__(self, place: Path) -> None:
        """`place`: the directory that the run has as long as it lasts."""
        self._place = place
        self._last: dict[str, Path] = {}

    def listen(self, task: str) -> Heard:
        """What to tell when a task is tried; it then stands for the try before."""
        return partial(self._heard, task)

    def _heard(self, task: str, execution: str, file: Path) -> None:
        name = self._place / f"{_mark(task)}{execution}"
        with suppress(OSError):  # a file system without links: it can be read when it is stored
            os.link(file, name)
        before, self._last[task] = self._last.get(task), name
        if before is not None:
            before.unlink(missing_ok=True)

    def over(self, task: str) -> Path | None:
        """The name that goes when the graph tells of the task."""
        return self._last.pop(task, None)

    def read(self, task: str, offset: int) -> Said | None:
        """What the task has printed so far, from there on; None: it does not run."""
        try:
            names = os.listdir(self._place)
        except FileNotFoundError:
            return None
        for name in names:
            if name.startswith(_mark(task)):
                with suppress(FileNotFoundError), open(self._place / name, "rb") as file:
                    file.seek(offset)
                    return Said(file.read(MOST), False, name.rpartition("-")[2])
        return None


def _mark(task: str) -> str:
    """What the name begins with: a task's own may be longer than that of a file."""
    return f"said-{blake3(task.encode()).hexdigest(16)}-"
