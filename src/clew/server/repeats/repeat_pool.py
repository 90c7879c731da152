"""The thread that claims queued repeats, as many at once as the machine can do."""

import logging
import os
import threading
import time

from clew.errors import ClewError
from clew.pipelines.runs.lease_holder import lease_end
from clew.pipelines.runs.lease_watcher import LeaseWatcher
from clew.server.catalogue import repeat_requests
from clew.server.catalogue.repeat_requests import MAX_TRIES
from clew.server.repeats.repeat_process import RepeatProcess
from clew.server.server_state import Service

_LOG = logging.getLogger("clew.server.repeats")
_CHECK_SECONDS = 1.0
"""Between two checks for work without notice, such as repeats of a server that is gone."""
_RETRY_SECONDS = 2.0
"""Pause while the database does not answer."""


class RepeatPool:
    """Performs the repeats that this server claims."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._count = max(1, len(os.sched_getaffinity(0)) // 2)
        self._leases = LeaseWatcher()
        self._active: list[RepeatProcess] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="repeats")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the processes, and leave their repeats to the next server."""
        self._ending.set()
        self._service.repeat_available.set()

    def close(self) -> None:
        self.stop()
        self._thread.join()
        for repeat in self._active:
            repeat.thread.join()

    def _work(self) -> None:
        while not self._ending.is_set():
            pause = _CHECK_SECONDS
            self._active = [repeat for repeat in self._active if repeat.thread.is_alive()]
            try:
                while len(self._active) < self._count and self._claim():
                    pass
            except ClewError as error:
                _LOG.error("cannot claim a repeat: %s", error.message)
                pause = _RETRY_SECONDS
            self._service.repeat_available.wait(pause)
            self._service.repeat_available.clear()

    def _claim(self) -> bool:
        """Start the next repeat; false if none waits."""
        holder = os.urandom(16).hex()
        with self._service.project() as project:
            claimed = repeat_requests.claim_next(
                project.graph,
                holder,
                now=time.time_ns(),
                lease=lease_end(),
                leases=self._leases,
                is_alive=project.is_alive,
            )
            if claimed is None:
                return False
            request, tries = claimed
            if tries > MAX_TRIES:
                repeat_requests.finish_repeat(
                    project.graph,
                    request.id,
                    holder,
                    state="failed",
                    output=request.output,
                    error=f"given up: its process was lost {MAX_TRIES} times",
                )
                return True
        _LOG.info("repeat started", extra={"repeat": request.id, "target": request.target})
        repeat = RepeatProcess(self._service, request, holder, self._ending)
        self._active.append(repeat)
        repeat.thread.start()
        return True
