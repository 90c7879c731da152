"""The processes that do the runs, kept at hand as long as the server lives."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from clew.errors import ClewError
from clew.server.catalogue import runs
from clew.server.service import Service
from clew.settings import without_own

_LOG = logging.getLogger("clew.server.run_workers")
_LOOK = 0.5
"""Seconds between looks at whether all are there."""
_GRACE = 10.0
"""Seconds that they have to put away what they are at."""
_DYING = 1.0
"""Seconds in which all that a runner started ends with it."""
_PAUSE = 5.0
"""Seconds before one that has hardly begun when it ended is started again."""


@dataclass
class _Runner:
    holder: str
    process: subprocess.Popen[bytes]
    since: float


class WorkerPool:
    """As many as runs may go on at once."""

    def __init__(self, service: Service, count: int, *, on_host: bool) -> None:
        self._service = service
        self._count = count
        self._on_host = on_host
        self._all: list[_Runner] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._look_after, name="runners")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """They put away what they are at, for others to go on with; one that will not is killed."""
        self._ending.set()
        self._service.work.set()
        self._thread.join()
        self._tell(b"end\n")
        until = time.monotonic() + _GRACE
        for runner in self._all:
            try:
                runner.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                runner.process.kill()
                runner.process.wait()
            self._let_go(runner, blame=False)

    def _look_after(self) -> None:
        while not self._ending.is_set():
            for runner in [one for one in self._all if one.process.poll() is not None]:
                self._all.remove(runner)
                self._gone(runner)
            while len(self._all) < self._count and not self._ending.is_set():
                self._all.append(self._started())
            if self._service.work.wait(_LOOK):
                self._service.work.clear()
                self._tell(b"\n")

    def _started(self) -> _Runner:
        holder = os.urandom(16).hex()
        root = os.fspath(self._service.folder.root)
        command = [sys.executable, "-m", "clew.server.run_workers.worker", root]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=without_own(),  # no task may find what lets one into the server or the graph
            start_new_session=True,  # an interrupt at the terminal is the server's to deal with
            bufsize=0,
        )
        assert process.stdin is not None
        told = {
            "holder": holder,
            "graph": self._service.settings.graph,
            "on_host": self._on_host,
        }
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(told).encode() + b"\n")
        return _Runner(holder, process, time.monotonic())

    def _gone(self, runner: _Runner) -> None:
        assert runner.process.stdin is not None
        runner.process.stdin.close()
        if not runner.process.returncode:
            return
        _LOG.error("a runner ended with status %s", runner.process.returncode)
        self._ending.wait(_PAUSE if time.monotonic() - runner.since < _PAUSE else _DYING)
        self._let_go(runner, blame=True)

    def _tell(self, word: bytes) -> None:
        for runner in self._all:
            assert runner.process.stdin is not None
            with suppress(BrokenPipeError, BlockingIOError):
                runner.process.stdin.write(word)

    def _let_go(self, runner: _Runner, *, blame: bool) -> None:
        """It is dead: what it held is free. `blame`: that may be what ended it."""
        with suppress(ClewError), self._service.graph() as graph:
            runs.release(graph, runner.holder, blame=blame)
        self._service.work.set()
