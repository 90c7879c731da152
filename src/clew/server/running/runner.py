"""A process that takes runs from the catalogue, one at a time, and does them.

    python -m clew.server.running.runner PROJECT

The first line of its input says who it is, and where the graph is; later ones wake it; when its
input ends, so does it, since nobody is left to look after it. It holds a run by a lease that it
keeps up, and ends at once where it no longer can: then another may have the run. Nothing has to be
put in order at its end: a run that was cut off is gone on with by whoever claims it.
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import clew
from clew.api.asked import Waiting, perform
from clew.api.project import Project
from clew.errors import ClewError
from clew.server.catalogue import runs, specs
from clew.server.catalogue.runs import Run
from clew.server.logs import configure

LEASE = 15.0
"""Seconds that a run is held for without a word from its holder."""
_BEAT = 1.0
"""Seconds between its words."""
_LOOK = 1.0
"""Seconds between looks for work that nobody woke it for: another server may be gone."""
_MOST = 100
"""Runs of one process: then a fresh one takes its place."""
_PAUSE = 2.0
"""Seconds to wait when the database cannot be reached."""

_LOG = logging.getLogger("clew.server.running")


def main(root: str) -> None:
    configure()
    told = json.loads(_line())
    holder, on_host = told["holder"], told["on_host"]
    opened = clew.open(Path(root))
    project = Project(opened._folder, replace(opened._settings, graph=told["graph"]))
    waiting = Waiting(project)
    for _ in range(_MOST):
        waiting.prepare()
        run = _next(project, holder)
        with _held(project, run, holder):
            _do(project, run, holder, waiting, on_host=on_host)
    os._exit(0)


def _line() -> bytes:
    """The first line; nothing of what follows is taken."""
    line = b""
    while not line.endswith(b"\n"):
        if not (byte := os.read(0, 1)):
            os._exit(0)
        line += byte
    return line


def _next(project: Project, holder: str) -> Run:
    """The next run; wait until there is one."""
    while True:
        now = time.time_ns()
        try:
            run = runs.claim(project._graph, holder, now=now, lease=now + _ns(LEASE))
            if run is not None:
                return run
            pause = _LOOK
        except ClewError as error:
            _LOG.error("no work can be looked for: %s", error.message)
            project.close()
            pause = _PAUSE
        _wait(pause)


def _wait(seconds: float) -> None:
    """Until somebody says that there is work, or the time is over."""
    ready, _, _ = select.select([0], [], [], seconds)
    if ready and not os.read(0, 4096):
        os._exit(0)


def _do(project: Project, run: Run, holder: str, waiting: Waiting, *, on_host: bool) -> None:
    if run.tries > runs.MOST_TRIES:
        why = f"given up: its runner was lost {runs.MOST_TRIES} times"
        runs.ended(project._graph, run.id, holder, state="failed", error=why)
        return
    runs.began(project._graph, run.id, holder)
    _LOG.info("run %s begins", run.id, extra={"run": run.id, "tries": run.tries})
    try:
        state, error = perform(
            project,
            waiting,
            uid=run.id,
            name=run.name,
            text=specs.text_of(project._graph, run.spec),
            values=run.config.get("parameters") or {},
            scheduled=run.scheduled,
            since=run.finished,
            on_host=on_host,
            say=lambda text: _LOG.info("%s", text, extra={"run": run.id}),
        )
    except ClewError as error_:
        state, error = "failed", error_.message
    except Exception as error_:
        _LOG.exception("run %s", run.id, extra={"run": run.id})
        state, error = "failed", f"{type(error_).__name__}: {error_}"
    if state == "canceled":
        error = runs.TERMINATED
    _settle(project, run.id, holder, state, error)
    _LOG.info("run %s %s", run.id, state, extra={"run": run.id, "state": state})


def _settle(project: Project, run: str, holder: str, state: str, error: str | None) -> None:
    """Say how it ended, as soon as the database can be told."""
    while True:
        try:
            runs.ended(project._graph, run, holder, state=state, error=error)
            return
        except ClewError as failure:
            _LOG.error("run %s cannot be settled: %s", run, failure.message, extra={"run": run})
            project.close()
            time.sleep(_PAUSE)


@contextmanager
def _held(project: Project, run: Run, holder: str) -> Iterator[None]:
    """Keep the lease up meanwhile, in a thread of its own."""
    over = threading.Event()
    thread = threading.Thread(target=_keep, args=(project, run.id, holder, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _keep(project: Project, run: str, holder: str, over: threading.Event) -> None:
    until = time.monotonic() + LEASE
    own = Project(project._folder, project._settings)
    while not over.wait(_BEAT):
        try:
            lease = time.time_ns() + _ns(LEASE)
            began = time.monotonic()
            stop = runs.hold(own._graph, run, holder, lease=lease)
            until = began + LEASE
        except ClewError:
            own.close()
            stop = False
        if over.is_set():
            break
        if stop is None or time.monotonic() > until - 2 * _BEAT:
            _LOG.error("run %s is held no more", run, extra={"run": run})
            os._exit(1)
        if stop:
            own.pipelines.stop(run)
        if select.select([0], [], [], 0)[0] and not os.read(0, 4096):
            os._exit(0)
    own.close()


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


if __name__ == "__main__":
    main(sys.argv[1])
