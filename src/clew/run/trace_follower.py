"""Read the trace while the command runs, and store the files it reads before they change."""

import os
import threading
from pathlib import Path

from clew.run.stdio.stdin_demand import StdinDemand
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import AnyRecord, Exit, Spawn, Trace, sort_records


class TraceFollower:
    """A thread that ends by itself when the tracer closes its end of the pipe."""

    def __init__(
        self, path: Path, notify: int, contents: ContentCapture, demand: StdinDemand
    ) -> None:
        self.records: list[AnyRecord] = []
        self.root: int | None = None
        """The process id of the command, once the trace names it."""
        self._trace = Trace(path)
        self._notify = notify
        self._contents = contents
        self._demand = demand
        self._pids: dict[int, int] = {}
        self.failure: Exception | None = None
        """Why content is no longer stored; the trace is still read."""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Wait for the end of the trace, and sort the records."""
        self._thread.join()
        self._trace.close()
        self.records = sort_records(self.records)

    def _run(self) -> None:
        try:
            while True:
                data = os.read(self._notify, 4096)
                self._read()
                if not data:
                    return
        finally:
            os.close(self._notify)

    def _read(self) -> None:
        new = self._trace.read()
        self.records += new
        for record in new:
            if type(record) is Spawn:
                self.root = self.root or record.pid
                self._pids[record.image] = record.pid
                self._demand.add(record.pid)
            elif type(record) is Exit:
                self._demand.drop(self._pids.get(record.image, 0))
        if self.failure is None:
            try:
                self._contents.follow(new)
            except Exception as error:  # never disturbs the command or the trace
                self.failure = error
