"""Record a run in the graph while it is performed.

A thread collects what happens and writes it in batches, so that tasks do not wait for the graph.
"""

import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from clew.documents.ids import RunId, Uid
from clew.pipelines.engine.run_state import Node
from clew.pipelines.runner import task_events
from clew.pipelines.runner.cancellation import is_cancel_requested
from clew.pipelines.runner.graph_writer import Batch, GraphWriter
from clew.pipelines.runner.live_logs import LiveLogs
from clew.pipelines.runner.run_types import ResumedRun
from clew.pipelines.runner.task_events import TaskEnd
from clew.pipelines.runner.task_reuse import Verdict
from clew.pipelines.spec.values import Values
from clew.project_directory import ProjectDirectory
from clew.prov.events import AnyEvent, Ended, Started
from clew.prov.queries.formats import run_id
from clew.run import malloc_trim
from clew.run.session.worker_session import WorkerSession
from clew.run.spool_directories import SpoolDirectory
from clew.settings import Settings
from clew.store.errors import from_os

_RETRY_SECONDS = 0.5
"""Between two attempts to reach the database."""
_QUIET_SECONDS = 0.02
"""After a pause of this length, the events so far are written."""
_COLLECT_SECONDS = 0.1
"""How long events without a pause are collected: each batch is a transaction."""
_IDLE_SECONDS = 0.1
"""How long the thread waits at most until the run is idle."""
_MAX_UNWRITTEN = 32
"""How many tasks that ran may wait to be written: their events are in memory."""
_TRIM_TASKS = 50
"""After how many tasks memory is given back to the system."""

_Item = AnyEvent | TaskEnd | WorkerSession


class Recorder:
    """Records one run. Holds its lock, which shows that it is running."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        resumed: ResumedRun | None = None,
        *,
        uid: Uid | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`uid`: of a new run; `say` gets a sentence when the database does not answer."""
        self.uid = resumed.uid if resumed else uid or Uid(os.urandom(16).hex())
        self.number = 0
        self.failure: Exception | None = None
        """Why recording has stopped."""
        self.idle = threading.Event()
        """Set while the run waits for tasks: then writing delays nothing."""
        self._resumed = resumed
        self._began = time.monotonic()
        self._directory = directory
        self._writer = GraphWriter(directory, settings, self.uid, say)
        self._numbers = itertools.count(resumed.last_event + 1 if resumed else 1)
        self._started: set[str] = set()
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._unwritten = 0
        self._written = 0
        self._caught_up = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._spool = SpoolDirectory(directory, self.uid)
        self.logs = LiveLogs(self._spool.path)

    @property
    def id(self) -> RunId:
        return run_id(self.number)

    @property
    def away(self) -> bool:
        """Whether the database does not answer."""
        return self._writer.away

    @property
    def canceled(self) -> bool:
        return is_cancel_requested(self._directory, self.uid)

    def begin(self) -> None:
        """Give the run its number."""
        with self._writer.graph() as graph:
            self.number = graph.begin_run(self.uid)
        self._thread.start()

    def remove(self) -> None:
        """Remove the record of a run that could not start."""
        with self._writer.graph() as graph:
            graph.remove(self.uid)

    def finish(self) -> None:
        """Wait until everything is written."""
        self._ending.set()
        self.idle.set()
        with self._caught_up:
            self._caught_up.notify_all()
        self._queue.put(None)
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        self._spool.close()

    def run_started(self, name: str, inputs: Values, tasks: Iterable[str], **more: Any) -> None:
        event = task_events.run_started(self.uid, name=name, inputs=inputs, tasks=tasks, **more)
        self._queue.put(event)

    def run_ended(self, state: str, outputs: Values, error: str | None) -> None:
        event = task_events.run_ended(self.uid, state=state, outputs=outputs, error=error)
        if self._resumed:  # the pause before it was resumed does not count
            seconds = self._resumed.seconds + time.monotonic() - self._began
            event = replace(event, facets={**event.facets, "seconds": seconds})
        self._queue.put(event)

    def task_started(self, node: Node, verdict: Verdict | None = None) -> None:
        if node.path not in self._started:
            self._started.add(node.path)
            self._queue.put(task_events.task_started(self.uid, node, verdict))

    def task_ended(self, end: TaskEnd) -> None:
        self.task_started(end.node)
        if not end.node.repeatable:
            self._started.remove(end.node.path)
        with self._caught_up:
            self._unwritten += bool(end.attempts)
            if not self._is_caught_up():
                self._caught_up.notify_all()
        self._queue.put(replace(end, live_log=self.logs.finish(end.node.path)))

    def worker_ended(self, worker: WorkerSession) -> None:
        self._queue.put(worker)

    def wait_for_backlog(self) -> None:
        """Wait until few tasks are left to write, unless the database is away."""
        with self._caught_up:
            if not self._is_caught_up():
                self.idle.set()
                self._caught_up.wait_for(self._is_caught_up)
                self.idle.clear()

    def _is_caught_up(self) -> bool:
        return self._unwritten < _MAX_UNWRITTEN or self.away

    # -- in the thread

    def _run(self) -> None:
        ended = False
        while not ended or self._writer.pending:
            items = self._collect()
            ended = ended or None in items
            written = 0
            try:
                new = [item for item in items if item is not None]
                if self.failure is None and new:
                    self._writer.pending.append(self._build_batch(new))
                written = self._writer.write_pending()
            except OSError as error:
                self.failure = from_os(error, doing="record the run")
            except Exception as error:  # the tasks go on to their end
                self.failure = error
            if self.failure is not None:
                self._writer.discard()
            with self._caught_up:
                self._unwritten = self._unwritten - written if self.failure is None else 0
                self._caught_up.notify_all()
            self._trim_memory(written)

    def _collect(self) -> list[_Item | None]:
        """Wait for events; nothing if it is time to try the database again."""
        try:
            items = [self._queue.get(timeout=_RETRY_SECONDS if self._writer.pending else None)]
        except queue.Empty:
            return []
        self._wait_for_pause()
        self.idle.wait(_IDLE_SECONDS)
        while not self._queue.empty():
            items.append(self._queue.get())
        return items

    def _wait_for_pause(self) -> None:
        """Wait until no more events come for a moment, or too many wait to be written."""
        until, queued = time.monotonic() + _COLLECT_SECONDS, -1
        with self._caught_up:
            while queued != self._queue.qsize() and time.monotonic() < until:
                queued = self._queue.qsize()
                if self._caught_up.wait_for(self._must_write, _QUIET_SECONDS):
                    return

    def _must_write(self) -> bool:
        return self._ending.is_set() or not self._is_caught_up()

    def _trim_memory(self, written: int) -> None:
        """Now and then in a long run, and at its end."""
        before, self._written = self._written, self._written + written
        many = self._written // _TRIM_TASKS > before // _TRIM_TASKS
        if many or (self._ending.is_set() and before >= _TRIM_TASKS):
            malloc_trim.trim_heap()

    def _build_batch(self, items: Sequence[_Item]) -> Batch:
        """Number the events in the order of writing: a reader of all events up to one misses
        none."""
        started = [self._number(item) for item in items if isinstance(item, Started)]
        tasks = [item for item in items if isinstance(item, TaskEnd)]
        attempts = self._read_attempts(tasks)
        # The ends of tasks with files are written later, and so get later numbers.
        ordered = sorted(tasks, key=lambda end: bool(end.attempts and end.node.outputs.artifacts))
        ends: list[AnyEvent] = [
            task_events.task_ended(
                self.uid, end, next(self._numbers), resumed=self._resumed is not None
            )
            for end in ordered
        ]
        workers = [item for item in items if isinstance(item, WorkerSession)]
        last = [event for worker in workers for event in _end_worker(worker)]
        last += [self._number(item) for item in items if isinstance(item, Ended)]
        return Batch(started, tasks, attempts, ends, last, workers)

    def _read_attempts(self, tasks: Sequence[TaskEnd]) -> list[list[AnyEvent]]:
        """The events of the attempts of each task, once the content they name is stored."""
        sessions: dict[str, WorkerSession] = {}
        events: list[list[AnyEvent]] = []
        for task in tasks:
            events.append([])
            for attempt in task.attempts:
                self.idle.wait(_IDLE_SECONDS)
                session, seen = attempt.events()
                events[-1] += seen
                if session is not None:
                    sessions[session.uid] = session
        for session in sessions.values():
            session.flush()
        return events

    def _number(self, event: AnyEvent) -> AnyEvent:
        return replace(event, n=next(self._numbers))


def _end_worker(worker: WorkerSession) -> list[AnyEvent]:
    worker.close()
    events = worker.last_events()
    worker.flush()
    return events
