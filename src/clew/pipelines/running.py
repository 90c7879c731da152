"""Carries out what the engine decides: as many tasks at once as there is room, each a thread that
waits for a witnessed process, and every change told to the graph and to whoever watches."""

from __future__ import annotations

import heapq
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.folder import Folder
from clew.pipelines.engine import Engine, Instruction, Outcome, Over, Run
from clew.pipelines.ir import Dag, Pipeline
from clew.pipelines.recording import Recorder
from clew.pipelines.scopes import Node, Values
from clew.pipelines.tasks import LAUNCHER, Attempt
from clew.settings import Settings

RUNS = "pipeline-runs"
"""Beside `.clew/`: what lies in there is ours, and no execution's file."""
_PATIENCE = 1.0
"""Seconds that a task has to end by itself when the run is canceled."""


@dataclass(frozen=True)
class Change:
    """Something happened to a task; `seconds` since it began, where it is over."""

    node: Node
    execution: str | None = None
    seconds: float | None = None
    why: str | None = None


def run(
    folder: Folder,
    settings: Settings,
    pipeline: Pipeline,
    inputs: Values,
    *,
    file: Path,
    python: str,
    jobs: int | None = None,
    watch: Callable[[Change], None] = lambda _: None,
) -> str:
    """Run a pipeline to its end, however that is; the answer is the run's id."""
    recorder = Recorder(folder, settings)
    try:
        recorder.begin()
        room = jobs or len(os.sched_getaffinity(0))
        return _Running(folder, settings, pipeline, inputs, recorder, python, room, watch).run(file)
    finally:
        recorder.close()


class _Running:
    def __init__(
        self,
        folder: Folder,
        settings: Settings,
        pipeline: Pipeline,
        inputs: Values,
        recorder: Recorder,
        python: str,
        room: int,
        watch: Callable[[Change], None],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._pipeline = pipeline
        self._inputs = inputs
        self._recorder = recorder
        self._python = python
        self._room = room
        self._watch = watch
        self._place = folder.root / RUNS / recorder.id
        self._launcher = self._place / "launch.py"
        self._facts = self._facts_of_run()
        self._engine = Engine(pipeline, inputs, self._facts)
        self._ready: list[tuple[float, int, Run]] = []  # by when, and by who came first
        self._order = 0
        self._busy: dict[str, tuple[Attempt, threading.Thread]] = {}
        self._since: dict[str, float] = {}
        self._executions: dict[str, list[dict[str, Any]]] = {}
        self._finished: queue.SimpleQueue[tuple[str, Outcome]] = queue.SimpleQueue()

    def run(self, file: Path) -> str:
        dag = self._pipeline.root.body
        assert isinstance(dag, Dag)
        self._recorder.started(self._pipeline.name, str(file), self._inputs, sorted(dag.tasks))
        try:
            with _interrupting():
                self._place.mkdir(parents=True, exist_ok=True)
                self._launcher.write_text(LAUNCHER)
                self._take(self._engine.begin())
                while not self._engine.done:
                    self._start()
                    self._await()
        except KeyboardInterrupt:
            self._cancel()
            self._recorder.ended("canceled", Values(), "the run was canceled")
            return self._recorder.id
        except BaseException as error:
            self._cancel()
            self._recorder.ended("failed", Values(), f"{type(error).__name__}: {error}")
            raise
        failed = self._engine.failed
        why = f"{failed.path}: {failed.error}" if failed else None
        self._recorder.ended("failed" if failed else "succeeded", self._engine.outputs, why)
        return self._recorder.id

    # -- one step

    def _take(self, instructions: Iterable[Instruction]) -> None:
        for one in instructions:
            if isinstance(one, Run):
                self._order += 1
                heapq.heappush(self._ready, (time.monotonic() + one.wait, self._order, one))
            else:
                self._over(one)

    def _start(self) -> None:
        """Begin what is ready, as long as there is room."""
        while len(self._busy) < self._room and self._ready:
            if self._ready[0][0] > time.monotonic():
                return
            self._begin(heapq.heappop(self._ready)[2])

    def _begin(self, what: Run) -> None:
        node = what.node
        again = f"@{what.attempt}" if what.attempt > 1 else ""
        attempt = Attempt(
            folder=self._folder,
            settings=self._settings,
            python=self._python,
            launcher=self._launcher,
            place=self._free(self._place / f"{node.path}{again}"),
            node=node,
            facts=self._facts,
        )
        if node.path not in self._since:
            self._since[node.path] = time.monotonic()
            self._recorder.task_started(node)
        self._watch(Change(node))
        thread = threading.Thread(
            target=lambda: self._finished.put((node.path, attempt.run())), name=node.path
        )
        self._busy[node.path] = (attempt, thread)
        thread.start()

    def _await(self) -> None:
        """Until a task ends, or one may be tried again."""
        pause = None
        if self._ready and len(self._busy) < self._room:
            pause = max(0.0, self._ready[0][0] - time.monotonic())
        try:
            path, outcome = self._finished.get(timeout=pause)
        except queue.Empty:
            return
        attempt, thread = self._busy.pop(path)
        thread.join()
        self._ran(path, attempt)
        self._take(self._engine.ended(path, outcome))

    def _ran(self, path: str, attempt: Attempt) -> None:
        if attempt.execution:
            self._executions.setdefault(path, []).append(attempt.execution)

    def _over(self, one: Over) -> None:
        node = one.node
        executions = self._executions.pop(node.path, [])
        self._recorder.task_over(node, executions, one.why)
        since = self._since.pop(node.path, None)
        took = None if since is None else time.monotonic() - since
        self._watch(Change(node, executions[-1]["id"] if executions else None, took, one.why))

    def _cancel(self) -> None:
        stopped = self._engine.cancel()
        attempts = list(self._busy.items())
        for number, patience in ((signal.SIGTERM, _PATIENCE), (signal.SIGKILL, 60.0)):
            until = time.monotonic() + patience
            for _, (attempt, thread) in attempts:
                if thread.is_alive():
                    attempt.stop(number)
            for _, (_, thread) in attempts:
                thread.join(max(0.0, until - time.monotonic()))
        for path, (attempt, _) in attempts:
            self._ran(path, attempt)
        for one in stopped:
            self._over(one)

    # -- what a run is

    def _facts_of_run(self) -> dict[str, str]:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        name = f"{self._pipeline.name}-{self._recorder.id}"
        return {
            "pipeline_job_name": name,
            "pipeline_job_resource_name": name,
            "pipeline_job_uuid": self._recorder.uid,
            "pipeline_root": str(self._place),
            "pipeline_job_create_time_utc": now,
            "pipeline_job_schedule_time_utc": now,
        }

    @staticmethod
    def _free(place: Path) -> Path:
        """`place`, or one like it: a pipeline within that is tried again comes by here twice."""
        number, found = 1, place
        while found.exists():
            number += 1
            found = place.with_name(f"{place.name}~{number}")
        return found


@contextmanager
def _interrupting() -> Iterator[None]:
    """An order to end is an interrupt: what runs is stopped, and that is recorded."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
