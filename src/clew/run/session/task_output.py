"""What the tasks of work of a session print, kept by one thread for all of them: a thread for
each would take as long to start as a small task takes to run."""

from __future__ import annotations

import os
import select
import threading
from pathlib import Path
from typing import Any

from clew.redaction import Redactor
from clew.run.stdio.streams import StreamCapture

_BLOCK = 1 << 16


class TaskOutput:
    """The output of one task, errors included."""

    def __init__(self, capture: StreamCapture, descriptor: int) -> None:
        self.capture = capture
        self.descriptor = descriptor
        """What the task has as its output, until it is `given`."""
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        self.names = {os.fsencode(name): "stdout"}
        """As the tracer will see it."""
        self.silent = threading.Event()
        """There is nobody left who could print."""

    def given(self) -> None:
        """The task has it: let go of ours."""
        os.close(self.descriptor)

    def finish(self) -> None:
        """The task has ended: take what is still on its way."""
        self.silent.wait()
        self.capture.finish()

    def facets(self) -> dict[str, Any]:
        """What whoever goes by it has to know, when it has ended."""
        return {"masked": ["stdout"]} if self.capture.masked else {}


class OutputReader:
    """Those of one session."""

    def __init__(self, redactor: Redactor, limit: int) -> None:
        self._redactor = redactor
        self._limit = limit
        self._ready = select.epoll()
        self._heard: dict[int, TaskOutput] = {}
        self._end = os.eventfd(0)
        self._ready.register(self._end, select.EPOLLIN)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def open(self, file: Path) -> TaskOutput:
        """Of a task that is about to begin; what it prints is kept in that file."""
        capture = StreamCapture(file, redactor=self._redactor, limit=self._limit)
        source, descriptor = os.pipe()
        output = self._heard[source] = TaskOutput(capture, descriptor)
        self._ready.register(source, select.EPOLLIN)
        return output

    def close(self) -> None:
        """No task is left."""
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
                    self._heard[source].capture.feed(data)
                else:
                    self._ready.unregister(source)
                    output = self._heard.pop(source)  # before its number can be another's
                    os.close(source)
                    output.silent.set()
