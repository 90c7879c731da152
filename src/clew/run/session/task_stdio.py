"""Capture the output of a session's tasks, with one thread for all of them: starting a thread for
each would take as long as a small task runs."""

import os
import select
import threading
from pathlib import Path
from typing import Any

from clew.redaction import Redactor
from clew.run.stdio.streams import StreamCapture

_BLOCK = 1 << 16


class TaskOutput:
    """The output of one task, stdout and stderr together."""

    def __init__(self, capture: StreamCapture, descriptor: int) -> None:
        self.capture = capture
        self.descriptor = descriptor
        """The write end for the task, until `given` closes it here."""
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        self.names = {os.fsencode(name): "stdout"}
        """Its name as the tracer sees it."""
        self.finished = threading.Event()
        """Set when every process that could print has ended."""

    def close_write_end(self) -> None:
        """Close our copy of the write end: the task has its own."""
        os.close(self.descriptor)

    def finish(self) -> None:
        """Wait for the rest of the output, then close the capture."""
        self.finished.wait()
        self.capture.finish()

    def facets(self) -> dict[str, Any]:
        """Facets of the output, after `finish`."""
        return {"masked": ["stdout"]} if self.capture.masked else {}


class OutputReader:
    """The outputs of one session, and the thread that reads them."""

    def __init__(self, redactor: Redactor, limit: int) -> None:
        self._redactor = redactor
        self._limit = limit
        self._ready = select.epoll()
        self._outputs: dict[int, TaskOutput] = {}
        self._end = os.eventfd(0)
        self._ready.register(self._end, select.EPOLLIN)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def open(self, file: Path) -> TaskOutput:
        """Open the output of a new task; it is captured in that file."""
        capture = StreamCapture(file, redactor=self._redactor, limit=self._limit)
        source, descriptor = os.pipe()
        output = self._outputs[source] = TaskOutput(capture, descriptor)
        self._ready.register(source, select.EPOLLIN)
        return output

    def close(self) -> None:
        """Stop the thread; no task is left."""
        os.eventfd_write(self._end, 1)
        self._thread.join()

    def _listen(self) -> None:
        while True:
            for source, _ in self._ready.poll():
                if source == self._end:
                    self._ready.close()
                    os.close(self._end)
                    return
                data = os.read(source, _BLOCK)
                if data:
                    self._outputs[source].capture.feed(data)
                else:
                    self._ready.unregister(source)
                    output = self._outputs.pop(source)  # before the descriptor number is used again
                    os.close(source)
                    output.finished.set()
