"""The pool of worker processes: starts them, restarts those that end, and stops them."""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass

from clew.errors import ClewError
from clew.pipelines.runner.run_types import ClusterOptions
from clew.pipelines.runs import run_queue
from clew.server.server_state import Service
from clew.settings import remove_own_variables

_LOG = logging.getLogger("clew.server.run_workers")
_CHECK_SECONDS = 0.5
"""Between two checks that all workers are alive."""
_GRACE_SECONDS = 3.5
"""How long workers may take to requeue their runs at shutdown."""
_DYING_SECONDS = 1.0
"""How long the child processes of a dead worker may take to end."""
_RESTART_SECONDS = 5.0
"""Pause before a worker that died this early is replaced."""


@dataclass
class _Worker:
    holder: str
    process: subprocess.Popen[bytes]
    started: float


class WorkerPool:
    """`count` workers: as many runs can be in progress at once."""

    def __init__(
        self,
        service: Service,
        count: int,
        *,
        on_host: bool,
        cluster: ClusterOptions | None = None,
    ) -> None:
        """`cluster`: where tasks run as Pods; None: on this machine."""
        self._service = service
        self._count = count
        self._on_host = on_host
        self._cluster = cluster
        self._workers: list[_Worker] = []
        self._ending = threading.Event()
        self._deadline = 0.0
        self._thread = threading.Thread(target=self._supervise, name="workers")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Let the workers requeue their runs and exit; do not wait for them."""
        self._deadline = self._deadline or time.monotonic() + _GRACE_SECONDS
        self._ending.set()
        self._service.work_available.set()

    def kill(self) -> None:
        for worker in self._workers:
            worker.process.kill()

    def close(self) -> None:
        """Stop the workers; kill those that take too long."""
        self.stop()
        self._thread.join()
        for worker in self._workers:
            try:
                worker.process.wait(max(0.0, self._deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            self._release(worker, blame=False)

    def _supervise(self) -> None:
        while not self._ending.is_set():
            for worker in [w for w in self._workers if w.process.poll() is not None]:
                self._workers.remove(worker)
                self._handle_exit(worker)
            while len(self._workers) < self._count and not self._ending.is_set():
                self._workers.append(self._start_worker())
            if self._service.work_available.wait(_CHECK_SECONDS):
                self._service.work_available.clear()
                self._send(b"\n")
        self._send(b"end\n")

    def _start_worker(self) -> _Worker:
        holder = os.urandom(16).hex()
        root = os.fspath(self._service.directory.root)
        # -P: it imports nothing from its working directory, which is the project.
        command = [sys.executable, "-P", "-m", "clew.server.run_workers.worker", root]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            # Tasks must not see the credentials of the server and the graph.
            env=remove_own_variables(),
            start_new_session=True,  # Ctrl-C must reach only the server
            bufsize=0,
        )
        assert process.stdin is not None
        config = {
            "holder": holder,
            "graph": self._service.settings.graph,
            "on_host": self._on_host,
            "cluster": asdict(self._cluster) if self._cluster else None,
            "plain_log": self._service.plain_log,
        }
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(config).encode() + b"\n")
        return _Worker(holder, process, time.monotonic())

    def _handle_exit(self, worker: _Worker) -> None:
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        if not worker.process.returncode:
            return
        _LOG.error("a worker ended with status %s", worker.process.returncode)
        self._ending.wait(
            _RESTART_SECONDS
            if time.monotonic() - worker.started < _RESTART_SECONDS
            else _DYING_SECONDS
        )
        self._release(worker, blame=True)

    def _send(self, line: bytes) -> None:
        for worker in self._workers:
            assert worker.process.stdin is not None
            with suppress(BrokenPipeError, BlockingIOError):
                worker.process.stdin.write(line)

    def _release(self, worker: _Worker, *, blame: bool) -> None:
        """Requeue the run of a dead worker. `blame`: the run may have killed it, so count a try."""
        with suppress(ClewError), self._service.graph() as graph:
            run_queue.release_claim(graph, worker.holder, blame=blame)
        self._service.work_available.set()
