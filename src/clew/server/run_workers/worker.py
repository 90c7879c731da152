"""A worker process: claims queued runs and performs them, one at a time.

    python -m clew.server.run_workers.worker PROJECT

Input, from the server: the first line is JSON with the worker's id and the address of the graph;
an empty line means that work is available; `end` means to requeue the current run and exit. When
the input ends, the server is gone, and the worker exits at once. A worker whose tasks are Pods also
exits at once at `end`: they run on.

The worker holds its run by a lease, which it renews, and exits at once when another worker has
claimed the run. It can be killed at any time: the next worker that claims the run resumes it.

While the database does not answer, running tasks go on, no task starts, and events are kept in
memory until the database is back. The lease has expired by then, but other workers leave this one
the time to renew it (see `lease_watcher`), and none claims the run while this process holds its
lock in the project directory. So a server that alone loses the database keeps its runs.
"""

import json
import logging
import os
import select
import sys
import threading
import time
from dataclasses import replace

from clew import settings
from clew.api.local.project import LocalProject, open_local_project
from clew.documents.ids import Uid
from clew.errors import Busy, ClewError, NoDatabase
from clew.pipelines.runner.cancellation import request_cancel
from clew.pipelines.runner.run_types import ClusterOptions
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.lease_holder import hold_lease, lease_end
from clew.pipelines.runs.lease_watcher import LeaseWatcher
from clew.pipelines.runs.perform_request import StandbyWorkers, perform_request
from clew.pipelines.runs.run_queue import RunRequest
from clew.server.log_format import configure

_POLL_SECONDS = 1.0
"""Between two checks for work without notice, such as runs of a server that is gone."""
_MAX_RUNS = 100
"""Runs of one process; then a new process replaces it."""
_RETRY_SECONDS = 2.0
"""Pause while the database does not answer."""

_LOG = logging.getLogger("clew.server.run_workers")


class _Worker:
    def __init__(
        self,
        project: LocalProject,
        holder: str,
        *,
        on_host: bool,
        cluster: ClusterOptions | None,
    ) -> None:
        self._project = project
        self._holder = holder
        self._on_host = on_host
        self._cluster = cluster
        self._standby = StandbyWorkers(project)
        self._leases = LeaseWatcher()
        self._ending = False

    def work(self) -> None:
        for _ in range(_MAX_RUNS):
            if self._cluster is None:
                self._standby.prepare()
            run = self._claim_next()
            if run is None:
                break
            finished = threading.Event()
            lease_thread = threading.Thread(
                target=self._hold_lease, args=(run.id, finished), daemon=True
            )
            lease_thread.start()
            self._process(run)
            finished.set()
            lease_thread.join()

    # -- claiming runs

    def _claim_next(self) -> RunRequest | None:
        """Wait for a run and claim it; None when the worker must exit."""
        while not self._ending:
            pause = _POLL_SECONDS
            try:
                run = run_queue.claim_next(
                    self._project.graph,
                    self._holder,
                    now=time.time_ns(),
                    lease=lease_end(),
                    leases=self._leases,
                    is_alive=self._project.is_alive,
                )
                if run is not None:
                    return run
            except ClewError as error:
                _LOG.error("cannot claim a run: %s", error.message)
                self._project.close()
                pause = _RETRY_SECONDS
            self._read_input(pause)
        return None

    def _read_input(self, seconds: float) -> None:
        """Wait for input, at most this long."""
        if select.select([0], [], [], seconds)[0]:
            data = os.read(0, 4096)
            if not data:
                os._exit(0)
            self._ending = self._ending or b"end" in data

    # -- performing a run

    def _process(self, run: RunRequest) -> None:
        if run.tries > run_queue.MAX_TRIES:
            self._finish(
                run, "failed", f"given up: its worker was lost {run_queue.MAX_TRIES} times"
            )
            return
        extra = {"run": run.id}
        while True:
            try:
                state, error = self._perform(run)
                break
            except NoDatabase as failure:  # the next try resumes after the recorded tasks
                self._await_database("the run is waiting for the database", failure, run)
            except Busy as failure:
                _LOG.error("run requeued: %s", failure.message, extra=extra)
                state, error = "busy", None
                break
            except ClewError as failure:
                state, error = "failed", failure.message
                break
            except Exception as failure:
                _LOG.exception("run failed", extra=extra)
                state, error = "failed", f"{type(failure).__name__}: {failure}"
                break
        self._finish(run, state, error)

    def _perform(self, run: RunRequest) -> tuple[str, str | None]:
        extra = {"run": run.id}
        run_queue.mark_started(self._project.graph, run.id, self._holder)
        _LOG.info("run started", extra={**extra, "tries": run.tries})
        return perform_request(
            self._project,
            run,
            self._standby,
            on_host=self._on_host,
            cluster=self._cluster,
            say=lambda text: _LOG.info("%s", text, extra=extra),
        )

    def _finish(self, run: RunRequest, state: str, error: str | None) -> None:
        """Store the result, as soon as the database answers."""
        while True:
            try:
                graph = self._project.graph
                interrupted = (
                    state == "canceled"
                    and self._ending
                    and not run_queue.is_canceled(graph, run.id)
                )
                if interrupted or state == "busy":
                    run_queue.requeue_interrupted(graph, run.id, self._holder)
                    state = "requeued"
                else:
                    reason = run_queue.TERMINATED if state == "canceled" else error
                    run_queue.finish_request(graph, run.id, self._holder, state=state, error=reason)
                _LOG.info("run %s", state, extra={"run": run.id, "state": state})
                return
            except ClewError as failure:
                self._await_database("cannot store the result of the run", failure, run)

    def _await_database(self, what: str, failure: ClewError, run: RunRequest) -> None:
        """Pause before the next try. A worker that must exit does not wait: the next worker
        finds in the graph what was done."""
        _LOG.error("%s: %s", what, failure.message, extra={"run": run.id})
        self._project.close()
        if self._ending:
            os._exit(1)
        time.sleep(_RETRY_SECONDS)

    # -- holding the lease

    def _hold_lease(self, run: Uid, finished: threading.Event) -> None:
        """Renew the lease and read the input until the run has finished."""
        directory = self._project.directory

        def wait(seconds: float) -> None:
            self._read_input(seconds)
            if self._ending and self._cluster is not None:
                os._exit(0)  # the Pods run on, and the worker that resumes the run follows them
            if self._ending:
                request_cancel(directory, run)

        def lost() -> None:
            _LOG.error("another worker has claimed the run", extra={"run": run})
            os._exit(1)

        hold_lease(
            directory,
            self._project.settings,
            run,
            self._holder,
            finished=finished,
            wait=wait,
            lost=lost,
        )


def _read_first_line() -> bytes:
    """Read byte by byte, so that `select` sees the input that follows."""
    line = b""
    while not line.endswith(b"\n"):
        if not (byte := os.read(0, 1)):
            os._exit(0)
        line += byte
    return line


def main(root: str) -> None:
    config = json.loads(_read_first_line())
    configure(plain=config["plain_log"])
    project = open_local_project(replace(settings.load(), graph=config["graph"]), root)
    cluster = ClusterOptions(**config["cluster"]) if config["cluster"] else None
    _Worker(project, config["holder"], on_host=config["on_host"], cluster=cluster).work()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
