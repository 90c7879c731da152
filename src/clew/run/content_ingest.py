"""Takes in the content of what was read, as the trace tells of it; nobody waits for whoever tells
the graph of it meanwhile, or for somebody else's content."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import AnyRecord


class ContentIngest:
    """Of one trace."""

    def __init__(self, contents: ContentCapture) -> None:
        self._contents = contents
        self._failure: Exception | None = None
        self._waiting: deque[list[AnyRecord]] = deque()
        self._at_it = threading.Lock()

    @property
    def failure(self) -> Exception | None:
        """Why not all was taken in."""
        return self._failure or self._contents.failure

    def add(self, new: list[AnyRecord]) -> None:
        """More of the trace, to be taken in next."""
        self._waiting.append(new)

    def go_on(self) -> None:
        """Take in what waits, unless somebody is at it: he does it after."""
        while self._waiting and self._at_it.acquire(blocking=False):
            try:
                self._follow()
            finally:
                self._at_it.release()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """All that was added is taken in, and nothing more is until this is left."""
        with self._at_it:
            self._follow()
            yield
        self.go_on()

    def _follow(self) -> None:
        while self._waiting:
            new = self._waiting.popleft()
            if self._failure is None:
                try:
                    self._contents.follow(new)
                except Exception as error:  # whatever it is, the work goes on
                    self._failure = error
