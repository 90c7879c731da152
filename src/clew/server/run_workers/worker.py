"""A process that takes runs from the catalogue, one at a time, and does them.

    python -m clew.server.run_workers.worker PROJECT

The first line of its input says who it is, and where the graph is; an empty one wakes it; `end`
lets it put away what it is at, for whoever claims it next; when its input ends, so does it, since
nobody is left to look after it. It holds a run by a lease that it keeps up, and ends at once when
another runner has claimed the run. It can be killed at any time: the next runner that claims a run
goes on with it.

While the database is away, tasks that run go on, no task begins, and what happened is kept in
memory and told when the database answers. The lease is over by then, but no other runner claims the
run before this one had the time to keep it up again (see `catalogue.leases`).
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import threading
import time
from dataclasses import replace

from clew import settings
from clew.api.local.pipelines.requested_runs import StandbyWorkers, perform_run
from clew.api.local.project import LocalProject, open_local_project
from clew.errors import Busy, ClewError, NoDatabase
from clew.pipelines.runs.recorder import stop
from clew.server.catalogue import pipeline_specs, runs
from clew.server.catalogue.leases import LeaseWatcher
from clew.server.catalogue.runs import Run
from clew.server.log_format import configure

LEASE_SECONDS = 15.0
"""Seconds that a run is held for without a word from its holder."""
_BEAT = 1.0
"""Seconds between its words."""
_LISTEN = 0.1
"""Seconds between looks at what it is told."""
_LOOK = 1.0
"""Seconds between looks for work that nobody woke it for: another server may be gone."""
_MOST = 100
"""Runs of one process: then a fresh one takes its place."""
_PAUSE = 2.0
"""Seconds to wait when the database cannot be reached."""

_LOG = logging.getLogger("clew.server.run_workers")


class _Runner:
    def __init__(self, project: LocalProject, holder: str, *, on_host: bool) -> None:
        self._project = project
        self._holder = holder
        self._on_host = on_host
        self._waiting = StandbyWorkers(project)
        self._leases = LeaseWatcher()
        self._ending = False

    def work(self) -> None:
        for _ in range(_MOST):
            self._waiting.prepare()
            run = self._next()
            if run is None:
                break
            over = threading.Event()
            keeper = threading.Thread(target=self._keep, args=(run.id, over), daemon=True)
            keeper.start()
            self._do(run)
            over.set()
            keeper.join()

    # -- finding work

    def _next(self) -> Run | None:
        """The next run; wait until there is one. None: it is to end."""
        while not self._ending:
            now = time.time_ns()
            pause = _LOOK
            try:
                lease = now + _ns(LEASE_SECONDS)
                run = runs.claim(
                    self._project.graph, self._holder, now=now, lease=lease, leases=self._leases
                )
                if run is not None:
                    return run
            except ClewError as error:
                _LOG.error("no work can be looked for: %s", error.message)
                self._project.close()
                pause = _PAUSE
            self._listen(pause)
        return None

    def _listen(self, seconds: float) -> None:
        """Until it is told something, or the time is over."""
        if select.select([0], [], [], seconds)[0]:
            told = os.read(0, 4096)
            if not told:
                os._exit(0)
            self._ending = self._ending or b"end" in told

    # -- doing it

    def _do(self, run: Run) -> None:
        if run.tries > runs.MAX_TRIES:
            self._settle(run, "failed", f"given up: its runner was lost {runs.MAX_TRIES} times")
            return
        words = {"run": run.id}
        while True:
            try:
                state, error = self._perform(run)
                break
            except NoDatabase as failure:  # what is done stays done, and is found at the next try
                self._await_database("a run cannot go on", failure, run)
            except Busy as failure:
                _LOG.error("run put back: %s", failure.message, extra=words)
                state, error = "busy", None
                break
            except ClewError as failure:
                state, error = "failed", failure.message
                break
            except Exception as failure:
                _LOG.exception("run failed", extra=words)
                state, error = "failed", f"{type(failure).__name__}: {failure}"
                break
        self._settle(run, state, error)

    def _perform(self, run: Run) -> tuple[str, str | None]:
        graph, words = self._project.graph, {"run": run.id}
        runs.mark_started(graph, run.id, self._holder)
        _LOG.info("run begins", extra={**words, "tries": run.tries})
        return perform_run(
            self._project,
            self._waiting,
            uid=run.id,
            name=run.name,
            text=pipeline_specs.text_of(graph, run.spec),
            values=run.config.get("parameters") or {},
            **run.config.get("options", {}),
            scheduled=run.scheduled,
            since=run.finished,
            stopped=run.stop,
            on_host=self._on_host,
            say=lambda text: _LOG.info("%s", text, extra=words),
        )

    def _settle(self, run: Run, state: str, error: str | None) -> None:
        """Say how it ended, as soon as the database can be told."""
        while True:
            try:
                graph = self._project.graph
                stopped = state == "canceled" and self._ending and not runs.get(graph, run.id).stop
                if stopped or state == "busy":
                    runs.requeue(graph, run.id, self._holder)
                    state = "put away"
                else:
                    why = runs.TERMINATED if state == "canceled" else error
                    runs.finish(graph, run.id, self._holder, state=state, error=why)
                _LOG.info("run %s", state, extra={"run": run.id, "state": state})
                return
            except ClewError as failure:
                self._await_database("a run cannot be settled", failure, run)

    def _await_database(self, what: str, failure: ClewError, run: Run) -> None:
        """Pause before the next try. A runner that is to end does not wait: the run's next runner
        finds in the graph what was done."""
        _LOG.error("%s: %s", what, failure.message, extra={"run": run.id})
        self._project.close()
        if self._ending:
            os._exit(1)
        time.sleep(_PAUSE)

    # -- holding it

    def _keep(self, run: str, over: threading.Event) -> None:
        """Keep the lease up until the run is over, and listen."""
        folder = self._project.directory
        with LocalProject(folder, self._project.settings) as own:
            beat = time.monotonic() + _BEAT
            while not over.is_set():
                self._listen(_LISTEN)
                if self._ending:
                    stop(folder, run)
                if time.monotonic() < beat:
                    continue
                try:
                    wanted = runs.renew_lease(
                        own.graph, run, self._holder, lease=time.time_ns() + _ns(LEASE_SECONDS)
                    )
                except ClewError:  # while the database is away nobody can claim the run
                    own.close()
                    wanted = False
                beat = time.monotonic() + _BEAT
                if over.is_set():
                    break
                if wanted is None:
                    _LOG.error("another runner has claimed the run", extra={"run": run})
                    os._exit(1)
                if wanted:
                    stop(folder, run)


def _line() -> bytes:
    """The first line; nothing of what follows is taken."""
    line = b""
    while not line.endswith(b"\n"):
        if not (byte := os.read(0, 1)):
            os._exit(0)
        line += byte
    return line


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def main(root: str) -> None:
    configure()
    told = json.loads(_line())
    project = open_local_project(replace(settings.load(), graph=told["graph"]), root)
    _Runner(project, told["holder"], on_host=told["on_host"]).work()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
