"""Schedules are looked at as long as the server lives."""

from __future__ import annotations

import logging
import threading
import time

from clew.errors import ClewError
from clew.server.catalogue import due_schedules
from clew.server.service import Service

_LOG = logging.getLogger("clew.server.run_workers")
_LOOK = 1.0
"""Seconds between looks; a tick that comes sooner is awaited."""
_PAUSE = 5.0
"""Seconds to wait when the database cannot be reached."""


class ScheduleLoop:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._go, name="ticking")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()

    def _go(self) -> None:
        pause = 0.0
        while not self._ending.wait(pause):
            try:
                pause = self._look()
            except ClewError as error:
                _LOG.error("schedules cannot be looked at: %s", error.message)
                pause = _PAUSE

    def _look(self) -> float:
        with self._service.graph() as graph:
            asked = due_schedules.queue_due_runs(graph, time.time_ns())
            soonest = due_schedules.next_due(graph)
        if asked:
            _LOG.info("schedules asked for runs", extra={"runs": asked})
            self._service.work.set()
        if soonest is None:
            return _LOOK
        left = (soonest - time.time_ns()) / 1e9
        return min(_LOOK, left) if left > 0 else _LOOK / 10
