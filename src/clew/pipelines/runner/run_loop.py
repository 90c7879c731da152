"""The loop that performs a run: it carries out the engine's decisions, records and reports them.

It runs as many tasks at once as the backend has capacity for, each as a recorded execution.
"""

import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from clew.errors import NoDatabase, NotAllowed
from clew.garbage_collection import collect_seldom
from clew.pipelines.engine.admission_queue import AdmissionQueue
from clew.pipelines.engine.deadlines import Deadlines
from clew.pipelines.engine.engine import (
    READY_LIMIT,
    Engine,
    Instruction,
    StartTask,
    TaskFinished,
    TaskResult,
)
from clew.pipelines.engine.input_resolution import BadInput
from clew.pipelines.run_directory import PIPELINE
from clew.pipelines.runner.cancellation import sigterm_as_interrupt
from clew.pipelines.runner.recorder import Recorder
from clew.pipelines.runner.run_types import Change, PipelineRun, RunContext, RunOptions
from clew.pipelines.runner.task_backend import TaskBackend
from clew.pipelines.runner.task_events import TaskEnd
from clew.pipelines.runner.task_reuse import Verdict, build_outputs
from clew.pipelines.spec.ir import Dag
from clew.pipelines.spec.values import Values
from clew.pipelines.tasks.attempt import Attempt
from clew.pipelines.tasks.builtin_tasks import is_builtin
from clew.pipelines.tasks.volumes import TaskEnvironment, VolumeError
from clew.project_directory import ProjectDirectory, keep_from_git
from clew.settings import Settings

_TERMINATION_SECONDS = 1.0
"""Between SIGTERM and SIGKILL to a task when the run is canceled."""
_RETRY_SECONDS = 1.0
"""Pause before a task that cannot start without the database is tried again."""
_CHECK_SECONDS = 0.2
"""Between two checks whether the run was canceled."""
_SWITCH_SECONDS = 0.0001
"""How long the recorder's thread may keep the others waiting."""


class _DeadlineExceeded(Exception):
    """The run has reached its deadline."""


MakeBackend = Callable[[RunContext], TaskBackend]
"""Makes the backend of a run that has its id now."""


@collect_seldom()  # else the next task waits while the events of one are looked through
def perform(
    directory: ProjectDirectory,
    settings: Settings,
    run: PipelineRun,
    options: RunOptions,
    make_backend: MakeBackend,
) -> str:
    """Perform a run until it succeeds, fails or is canceled, and return its id."""
    recorder = Recorder(directory, settings, run.resumed, uid=run.uid, say=options.say)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        recorder.begin()
        context = RunContext(
            directory=directory, settings=settings, id=recorder.id, uid=recorder.uid
        )
        loop = _RunLoop(run, options, context, make_backend(context), recorder)
        return loop.perform()
    finally:
        sys.setswitchinterval(interval)
        recorder.close()


class _RunLoop:
    """Starts tasks, waits for them, and passes their results to the engine."""

    def __init__(
        self,
        run: PipelineRun,
        options: RunOptions,
        context: RunContext,
        backend: TaskBackend,
        recorder: Recorder,
    ) -> None:
        self._run = run
        self._pipeline = run.pipeline
        self._options = options
        self._recorder = recorder
        self._backend = backend
        self._run_directory = context.run_directory
        self._facts = backend.facts
        self._engine = Engine(
            run.pipeline,
            run.inputs,
            self._facts,
            ready_limit=max(READY_LIMIT, 2 * backend.capacity.max_parallel),
        )
        self._admission = AdmissionQueue(
            backend.capacity, backend.environment_for, self._facts, options.say
        )
        self._deadlines = Deadlines()
        self._resumed = dict(run.resumed.finished) if run.resumed else {}
        """The tasks that were finished before this run was resumed."""
        # By the paths of tasks: running attempts, when they started, whether they can be reused,
        # and all their attempts so far.
        self._running: dict[str, Attempt] = {}
        self._started: dict[str, float] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._tried: dict[str, list[Attempt]] = {}
        self._finished: queue.SimpleQueue[Attempt] = queue.SimpleQueue()
        self._last_check = 0.0

    def perform(self) -> str:
        state, why = "failed", None
        if self._run.resumed is None:
            self._make_run_directory()
            self._record_start()
        try:
            with sigterm_as_interrupt():
                self._backend.begin()
                self._loop()
            failed = self._engine.failed
            state = "failed" if failed else "succeeded"
            why = f"{failed.path}: {failed.error}" if failed else None
        except KeyboardInterrupt:
            self._cancel()
            state, why = "canceled", "the run was canceled"
        except _DeadlineExceeded as error:
            self._cancel()
            why = str(error)
        except BaseException as error:
            self._cancel()
            why = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._end(state, why)
        return self._recorder.id

    def _make_run_directory(self) -> None:
        try:
            self._run_directory.mkdir(parents=True, exist_ok=True)
            keep_from_git(self._run_directory.parent)
            (self._run_directory / PIPELINE).write_text(self._run.text)
        except OSError as error:
            self._recorder.remove()
            raise NotAllowed(
                f"{self._run_directory} cannot be made: {error.strerror}",
                hint="check the free space and your permissions there",
            ) from error

    def _record_start(self) -> None:
        dag = self._pipeline.root.body
        assert isinstance(dag, Dag)
        self._recorder.run_started(
            self._pipeline.name,
            self._run.inputs,
            sorted(dag.tasks),
            file=os.fspath(self._run.file),
            facts=self._facts,
            options=self._options.recorded,
        )

    def _loop(self) -> None:
        self._deadlines.start("", self._pipeline.deadline, time.monotonic())
        self._apply(self._engine.begin())
        self._start_ready()
        while not self._engine.done:
            self._wait()
            self._start_ready()
            if self._recorder.failure is not None:
                raise self._recorder.failure

    def _end(self, state: str, why: str | None) -> None:
        """End the workers, and record the end of the run."""
        outputs = self._engine.outputs if state == "succeeded" else Values()
        workers = self._backend.end()
        self._recorder.run_ended(state, outputs, why)
        for worker in workers:
            self._recorder.worker_ended(worker)
        self._recorder.finish()
        self._backend.close()

    # -- one step

    def _apply(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, StartTask):
                self._enqueue(instruction, time.monotonic() + instruction.wait)
            else:
                self._record_end(instruction)

    def _enqueue(self, task: StartTask, when: float) -> None:
        bare = task.node.path in self._resumed or isinstance(task.node.component.body, Dag)
        self._admission.add(task, when, needs_resources=not bare)

    def _start_ready(self) -> None:
        """Start the ready tasks for which there is capacity. None starts while the database is
        away: another server may have claimed the run."""
        while (turn := self._admission.next(self._running, time.monotonic())) is not None:
            self._recorder.wait_for_backlog()
            if turn.error is not None:
                self._end_task(turn.start.node.path, TaskResult(error=turn.error))
                continue
            try:
                if not self._recorder.away:
                    self._start_task(turn.start, turn.environment)
                    continue
            except NoDatabase:  # it is unknown whether the task can be reused
                pass
            self._admission.release(turn.start.node.path)
            self._enqueue(turn.start, time.monotonic() + _RETRY_SECONDS)

    def _start_task(self, task: StartTask, given: TaskEnvironment) -> None:
        node = task.node
        if isinstance(node.component.body, Dag):
            self._apply(self._engine.retry_group(node.path))
            return
        if node.path in self._resumed:
            outputs = build_outputs(node, self._resumed[node.path])
            self._end_task(node.path, TaskResult(outputs=outputs))
            return
        try:
            if node.path not in self._started and not is_builtin(node):
                allowed = self._options.reuse and node.task.reuse
                verdict = self._backend.decide(node, given, reuse=allowed)
                self._started[node.path] = time.monotonic()
                self._recorder.task_started(node, verdict)
                self._verdicts[node.path] = verdict
                if verdict.reused is not None:
                    self._end_task(node.path, TaskResult(outputs=verdict.outputs))
                    return
            publish = self._recorder.logs.publish(node.path)
            attempt = self._backend.create(task, given, publish)
        except (BadInput, VolumeError) as error:
            self._end_task(node.path, TaskResult(error=str(error)))
            return
        self._started.setdefault(node.path, time.monotonic())
        self._launch(attempt)

    def _launch(self, attempt: Attempt) -> None:
        node = attempt.node
        self._options.watch(Change(node))
        self._running[node.path] = attempt
        self._deadlines.start(node.path, self._backend.deadline_of(node), time.monotonic())
        attempt.start(self._finished.put)

    def _wait(self) -> None:
        """Wait until a task ends, one may be retried, or the next check is due."""
        if time.monotonic() - self._last_check >= _CHECK_SECONDS:
            self._check()
        pause = _CHECK_SECONDS
        for when in (self._admission.next_time, self._deadlines.next()):
            if when is not None:
                pause = min(pause, max(0.0, when - time.monotonic()))
        self._recorder.idle.set()
        try:
            attempt = self._finished.get(timeout=pause)
        except queue.Empty:
            self._last_check = 0.0
            return
        finally:
            self._recorder.idle.clear()
        path = attempt.node.path
        del self._running[path]
        self._admission.release(path)
        self._tried.setdefault(path, []).append(attempt)
        for worker in self._backend.attempt_ended(attempt):
            self._recorder.worker_ended(worker)
        late_by = self._deadlines.end(path)
        self._end_task(path, TaskResult(error=late_by) if late_by else attempt.result())

    def _end_task(self, path: str, result: TaskResult) -> None:
        self._apply(self._engine.task_ended(path, result))

    def _check(self) -> None:
        """Check for deadlines, for a request to cancel, and for workers that died."""
        self._last_check = time.monotonic()
        for late, number in self._deadlines.pop_expired(self._last_check):
            if not late:
                raise _DeadlineExceeded(self._deadlines.end(late))
            self._running[late].stop(number)
        if self._recorder.canceled:
            raise KeyboardInterrupt
        self._backend.check()

    def _record_end(self, finished: TaskFinished) -> None:
        node = finished.node
        if self._resumed.pop(node.path, None) is not None:
            return  # it was recorded before the run was resumed
        since = self._started.pop(node.path, None)
        took = None if since is None else time.monotonic() - since
        verdict = self._verdicts.pop(node.path, None)
        reused = verdict.reused if verdict else None
        why = finished.why or (verdict.why if verdict else None)
        tried = self._tried.pop(node.path, [])
        change = Change(node, None, took, why, reused.task if reused else None)
        self._recorder.task_ended(
            TaskEnd(
                node,
                tried,
                why,
                verdict,
                tried[-1].place if tried else None,
                seconds=took,
                on_recorded=lambda id_: self._options.watch(replace(change, execution=id_)),
            )
        )

    def _cancel(self) -> None:
        stopped = self._engine.cancel()
        waiting = dict(self._running)
        for number, seconds in ((signal.SIGTERM, _TERMINATION_SECONDS), (signal.SIGKILL, 60.0)):
            for attempt in waiting.values():
                attempt.stop(number)
            until = time.monotonic() + seconds
            while waiting and (left := until - time.monotonic()) > 0:
                try:
                    ended = self._finished.get(timeout=left)
                except queue.Empty:
                    break
                waiting.pop(ended.node.path, None)
                self._tried.setdefault(ended.node.path, []).append(ended)
        for finished in stopped:
            self._record_end(finished)
