"""The thread that queues the runs of due schedules."""

import logging
import threading
import time

from clew.errors import ClewError
from clew.server.catalogue.pipelines import due_schedules
from clew.server.server_state import Service

_LOG = logging.getLogger("clew.server.run_workers")
_CHECK_SECONDS = 1.0
"""Between two checks, unless a schedule is due earlier."""
_RETRY_SECONDS = 5.0
"""Pause while the database does not answer."""


class ScheduleLoop:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="schedules")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        pause = 0.0
        while not self._ending.wait(pause):
            try:
                pause = self._check()
            except ClewError as error:
                _LOG.error("cannot check the schedules: %s", error.message)
                pause = _RETRY_SECONDS

    def _check(self) -> float:
        with self._service.graph() as graph:
            queued = due_schedules.queue_due_runs(graph, time.time_ns())
            next_due = due_schedules.next_due(graph)
        if queued:
            _LOG.info("schedules queued runs", extra={"runs": queued})
            self._service.work_available.set()
        if next_due is None:
            return _CHECK_SECONDS
        remaining = (next_due - time.time_ns()) / 1e9
        return min(_CHECK_SECONDS, remaining) if remaining > 0 else _CHECK_SECONDS / 10
