"""Reading the trace while the command runs, and storing what it read before it can change."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from clew.run.stdio.stdin_demand import StdinDemand
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import AnyRecord, Exit, Spawn, Trace, ordered


class TraceFollower:
    """A thread beside the command. It ends by itself when the tracer's end of the pipe closes."""

    def __init__(
        self, path: Path, notify: int, contents: ContentCapture, demand: StdinDemand
    ) -> None:
        self.records: list[AnyRecord] = []
        self.root: int | None = None
        """The process id of the command itself, once it is known."""
        self._trace = Trace(path)
        self._notify = notify
        self._contents = contents
        self._demand = demand
        self._pids: dict[int, int] = {}
        self.failure: Exception | None = None
        """Why content was no longer taken in; the records were read on all the same."""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> list[AnyRecord]:
        """All records, in the order of what happened."""
        self._thread.join()
        self._trace.close()
        self.records = ordered(self.records)
        return self.records

    def _run(self) -> None:
        try:
            while True:
                word = os.read(self._notify, 4096)
                self._take()
                if not word:
                    return
        finally:
            os.close(self._notify)

    def _take(self) -> None:
        new = self._trace.read()
        self.records += new
        for record in new:
            if isinstance(record, Spawn):
                self.root = self.root or record.pid
                self._pids[record.image] = record.pid
                self._demand.add(record.pid)
            elif isinstance(record, Exit):
                self._demand.drop(self._pids.get(record.image, 0))
        if self.failure is None:
            try:
                self._contents.follow(new)
            except Exception as error:  # whatever it is, the command and its trace go on
                self.failure = error
