"""Write the events of a run to the graph, in batches.

While the database is away, batches wait in memory and in `.clew/pending`, so that the next process
that resumes the run has them even if this one is killed. Folding is a union of facts with fixed
numbers, so a batch may be folded twice when it is unknown whether the first attempt took effect.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from clew import db
from clew.documents.ids import ExecutionId, Uid
from clew.errors import NoDatabase, NotFound
from clew.pipelines.runner import pending_events
from clew.pipelines.runner.task_events import TaskEnd, task_informed
from clew.pipelines.runner.task_reuse import GRAPH_CACHE_MB
from clew.project_directory import ProjectDirectory
from clew.prov.events import AnyEvent
from clew.prov.graph import Graph
from clew.prov.queries.executions import find_execution
from clew.run import recovery
from clew.run.session.worker_session import WorkerSession
from clew.settings import Settings, machine_id

_RECOVERY_SECONDS = 10.0
"""How long executions that were recorded while the database was away may take to be folded."""


class Batch(Struct, eq=False):
    """Events that are written together."""

    started: list[AnyEvent]
    tasks: list[TaskEnd]
    attempts: list[list[AnyEvent]]
    """The events of the attempts of each task."""
    task_ends: list[AnyEvent]
    last: list[AnyEvent]
    """The ends of workers, and of the run."""
    workers: list[WorkerSession]
    """Workers that have ended: their files are removed afterwards."""
    file: Path | None = None
    """In `.clew/pending`."""


class GraphWriter:
    """The batches of one run that are not in the graph yet."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        run: Uid,
        say: Callable[[str], None],
    ) -> None:
        """`say` gets a sentence when the database does not answer."""
        self.pending: list[Batch] = []
        self.away = False
        """Whether the database did not answer the last time."""
        self._directory = directory
        self._settings = settings
        self._machine = machine_id(settings)
        self._run = run
        self._say = say

    @contextlib.contextmanager
    def graph(self) -> Iterator[Graph]:
        address = self._settings.graph
        with db.connect(self._directory.graph, address=address, cache=GRAPH_CACHE_MB) as connection:
            yield Graph(connection, self._directory.uid)

    def write_pending(self) -> int:
        """Write the pending batches in order; return how many tasks that ran were written."""
        written = 0
        while self.pending:
            batch = self.pending[0]
            try:
                with self.graph() as graph:
                    executions = self._write(graph, batch)
            except NoDatabase as error:
                if not self.away:
                    self._say(f"{error.message}; the run is recorded when the database answers")
                self.away = True
                self._keep_on_disk()
                break
            self.away = False
            del self.pending[0]
            _clean_up(batch, executions)
            written += sum(bool(task.attempts) for task in batch.tasks)
        return written

    def discard(self) -> None:
        for batch in self.pending:
            for worker in batch.workers:
                worker.discard()
        self.pending.clear()

    def _write(self, graph: Graph, batch: Batch) -> list[ExecutionId | None]:
        """Fold a batch, perhaps for the second time; return the ids of the tasks' executions."""
        self._recover(batch.tasks)
        events = [*batch.started]
        for task, seen in zip(batch.tasks, batch.attempts, strict=True):
            events += [*seen, *task_informed(graph, task, seen)]
        incomplete = [end for end in batch.task_ends if pending_events.is_incomplete(end)]
        complete = [end for end in batch.task_ends if not pending_events.is_incomplete(end)]
        graph.fold([*events, *complete])
        # The files of the other tasks are in the graph now; and the run ends after its tasks.
        ends = [pending_events.complete_artifacts(graph, end, self._machine) for end in incomplete]
        graph.fold([*ends, *batch.last])
        return [_find_execution_id(graph, task) for task in batch.tasks]

    def _recover(self, tasks: Sequence[TaskEnd]) -> None:
        """Fold the executions that were recorded while the database was away."""
        executions = {attempt.execution for task in tasks for attempt in task.attempts} - {None}
        until = time.monotonic() + _RECOVERY_SECONDS
        while any((self._directory.spool / str(uid)).exists() for uid in executions):
            for failure in recovery.recover(self._directory, self._settings):
                if failure.database_unreachable:
                    raise NoDatabase(failure.why)
            if time.monotonic() > until:
                return  # a later command tries again
            time.sleep(0.02)  # another process may be folding it

    def _keep_on_disk(self) -> None:
        """Write the events to files, as far as there is room."""
        for batch in self.pending:
            if batch.file is None:
                seen = [event for events in batch.attempts for event in events]
                events = [*batch.started, *seen, *batch.task_ends, *batch.last]
                with contextlib.suppress(OSError):
                    batch.file = pending_events.write_events(self._directory, self._run, events)


def _clean_up(batch: Batch, executions: Sequence[ExecutionId | None]) -> None:
    """Free what a written batch needed, and report its tasks."""
    if batch.file is not None:
        batch.file.unlink(missing_ok=True)
    for worker in batch.workers:
        worker.discard()
    for task, execution in zip(batch.tasks, executions, strict=True):
        if task.live_log is not None:
            task.live_log.unlink(missing_ok=True)
        for attempt in task.attempts:
            attempt.discard()
        task.node.release()
        task.on_recorded(execution)


def _find_execution_id(graph: Graph, task: TaskEnd) -> ExecutionId | None:
    try:
        return find_execution(graph, task.execution).id if task.execution else None
    except NotFound:  # it could not be recovered yet
        return None
