"""Store the files that a session's trace names, in batches.

The thread that reads the trace must not wait for the thread that builds events, so new records
queue here and whichever thread is free processes them."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import AnyRecord


class CaptureQueue:
    """The queue of one trace, for one `ContentCapture`."""

    def __init__(self, contents: ContentCapture) -> None:
        self._contents = contents
        self._failure: Exception | None = None
        self._waiting: deque[list[AnyRecord]] = deque()
        self._busy = threading.Lock()

    @property
    def failure(self) -> Exception | None:
        """Why some content was not stored."""
        return self._failure or self._contents.failure

    def add(self, new: list[AnyRecord]) -> None:
        """Queue new records."""
        self._waiting.append(new)

    def process(self) -> None:
        """Process the queue, unless another thread does: it then takes these records too."""
        while self._waiting and self._busy.acquire(blocking=False):
            try:
                self._follow()
            finally:
                self._busy.release()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Process the whole queue, then hold it until the body ends."""
        with self._busy:
            self._follow()
            yield
        self.process()

    def _follow(self) -> None:
        while self._waiting:
            new = self._waiting.popleft()
            if self._failure is None:
                try:
                    self._contents.follow(new)
                except Exception as error:  # never disturbs the command
                    self._failure = error
