"""Carries out what the engine decides: as many tasks at once as there is room, each a witnessed
process, and every change told to the graph and to whoever watches."""

from __future__ import annotations

import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from clew.errors import NoDatabase, NotAllowed
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
from clew.pipelines.engine.resources import Capacity
from clew.pipelines.engine.scopes import Node, Values
from clew.pipelines.runner.interrupts import interrupting
from clew.pipelines.runner.recorder import Earlier, Recorder, Told
from clew.pipelines.runner.run_info import WORKSPACE, about
from clew.pipelines.runner.task_reuse import RUNS, Memo, Verdict, outputs_of
from clew.pipelines.spec.ir import Dag, Pipeline
from clew.pipelines.tasks import machine_resources
from clew.pipelines.tasks.attempt import Attempt, TaskFiles, find_free_directory
from clew.pipelines.tasks.attempt_factory import AttemptFactory
from clew.pipelines.tasks.builtin_tasks import BuiltinAttempt, is_builtin
from clew.pipelines.tasks.platform_file import PlatformMapping
from clew.pipelines.tasks.volumes import MountPoints, TaskEnvironment, VolumeError, Volumes
from clew.pipelines.tasks.worker_pool import WorkerPool
from clew.project_directory import ProjectDirectory, keep_from_git
from clew.prov.queries.pipelines.tasks import FinishedTask
from clew.settings import Settings

PIPELINE = "pipeline.yaml"
"""In a run's directory: what was run."""
_PATIENCE = 1.0
"""Seconds that a task has to end by itself when the run is canceled."""
_AWAY = 1.0
"""Seconds until a task is tried again that cannot begin because the database is away."""
_LOOK = 0.2
"""Seconds between looks at whether the run was canceled."""
_TURN = 0.0001
"""Seconds that the thread which tells the graph may keep the others waiting."""


class _TooLong(Exception):
    """The run is over, since its time is."""


class Change(Struct, frozen=True):
    """Something happened to a task; `seconds` since it began, where it is over."""

    node: Node
    execution: str | None = None
    seconds: float | None = None
    why: str | None = None
    reused: str | None = None
    """The task that stands for it."""


def run(
    directory: ProjectDirectory,
    settings: Settings,
    pipeline: Pipeline,
    inputs: Values,
    *,
    file: Path,
    text: str,
    python: str,
    earlier: Earlier | None = None,
    uid: str | None = None,
    facts: Mapping[str, str] | None = None,
    workers: WorkerPool | None = None,
    jobs: int | None = None,
    reuse: bool = True,
    on_host: bool = False,
    mapped: PlatformMapping,
    say: Callable[[str], None] = lambda _: None,
    watch: Callable[[Change], None] = lambda _: None,
) -> str:
    """Run a pipeline to its end, however that is; the answer is the run's id. `text` is what it
    was read from; `earlier`: the run that is gone on with; `uid`, `facts`: what a new one is
    called, and what else its tasks may ask about it; `workers`: those that wait for it."""
    workers = workers or WorkerPool(directory, settings)
    workers.set_redaction(directory, settings)
    recorder = Recorder(directory, settings, earlier, uid=uid, say=say)
    turn = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    try:
        recorder.begin()
        asked = (one.resources.accelerators for one in pipeline.components.values())
        room = machine_resources.measure_capacity(jobs, gpus=any(one is not None for one in asked))
        memo = Memo(directory, settings, pipeline.name, recorder.uid)
        running = _Running(
            directory,
            settings,
            pipeline,
            inputs,
            recorder,
            memo,
            python,
            room,
            reuse,
            on_host,
            mapped,
            say,
            watch,
            facts or {},
            workers,
        )
        if earlier is not None:
            return running.go_on(earlier)
        return running.run(file, text)
    finally:
        sys.setswitchinterval(turn)
        recorder.close()


class _Running:
    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        pipeline: Pipeline,
        inputs: Values,
        recorder: Recorder,
        memo: Memo,
        python: str,
        room: Capacity,
        reuse: bool,
        on_host: bool,
        mapped: PlatformMapping,
        say: Callable[[str], None],
        watch: Callable[[Change], None],
        facts: Mapping[str, str],
        workers: WorkerPool,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._pipeline = pipeline
        self._inputs = inputs
        self._recorder = recorder
        self._memo = memo
        self._reuse = reuse
        self._watch = watch
        self._place = directory.root / RUNS / recorder.id
        self._facts = {**about(pipeline.name, recorder.id, recorder.uid, self._place), **facts}
        self._engine = Engine(
            pipeline, inputs, self._facts, ready_limit=max(READY_LIMIT, 2 * room.max_parallel)
        )
        self._on_host = on_host
        self._workers = workers
        self._attempts = AttemptFactory(
            directory, settings, python, self._facts, workers, on_host=on_host, say=say
        )
        self._busy: dict[str, Attempt] = {}
        self._platform = os.fspath(mapped.file) if mapped.file.exists() else None
        self._volumes = Volumes(mapped, directory, self._place, recorder.uid)
        self._places: dict[str, MountPoints] = {}
        self._turns = AdmissionQueue(room, self._volumes, self._facts, say)
        self._deadlines = Deadlines()
        self._done: dict[str, FinishedTask] = {}  # before this run was resumed
        self._looked = 0.0
        self._since: dict[str, float] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._tried: dict[str, list[Attempt]] = {}
        self._finished: queue.SimpleQueue[Attempt] = queue.SimpleQueue()

    def run(self, file: Path, text: str) -> str:
        dag = self._pipeline.root.body
        assert isinstance(dag, Dag)
        self._make_place(text)
        self._recorder.started(
            self._pipeline.name,
            self._inputs,
            sorted(dag.tasks),
            file=os.fspath(file),
            facts=self._facts,
            options={
                "reuse": self._reuse,
                "on_host": self._on_host,
                "platform": self._platform,
            },
        )
        return self._to_its_end()

    def _make_place(self, text: str) -> None:
        try:
            self._place.mkdir(parents=True, exist_ok=True)
            keep_from_git(self._place.parent)
            (self._place / PIPELINE).write_text(text)
        except OSError as error:
            self._recorder.forget()
            raise NotAllowed(
                f"{self._place} cannot be made: {error.strerror}",
                hint="is there room, and may you write there?",
            ) from error

    def go_on(self, earlier: Earlier) -> str:
        self._done = earlier.done
        self._facts.update(earlier.facts)
        return self._to_its_end()

    def _to_its_end(self) -> str:
        state, why = "failed", None
        if self._pipeline.workspace:
            (self._place / WORKSPACE).mkdir(parents=True, exist_ok=True)
        try:
            with interrupting():
                self._go()
            failed = self._engine.failed
            state = "failed" if failed else "succeeded"
            why = f"{failed.path}: {failed.error}" if failed else None
        except KeyboardInterrupt:
            self._cancel()
            state, why = "canceled", "the run was canceled"
        except _TooLong as error:
            self._cancel()
            why = str(error)
        except BaseException as error:
            self._cancel()
            why = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._end(state, why)
        return self._recorder.id

    def _go(self) -> None:
        self._deadlines.start("", self._pipeline.deadline, time.monotonic())
        self._take(self._engine.begin())
        self._start()
        while not self._engine.done:
            self._await()
            self._start()
            if self._recorder.failure is not None:
                raise self._recorder.failure

    def _end(self, state: str, why: str | None) -> None:
        """All has ended: so do the workers, and the rest is told."""
        self._volumes.close()
        outputs = self._engine.outputs if state == "succeeded" else Values()
        self._recorder.ended(state, outputs, why)
        for worker in self._workers.release():
            self._recorder.leaves(worker)
        self._recorder.finish()
        self._memo.close()

    # -- one step

    def _take(self, instructions: Iterable[Instruction]) -> None:
        for one in instructions:
            if isinstance(one, StartTask):
                self._line_up(one, time.monotonic() + one.wait)
            else:
                self._over(one)

    def _line_up(self, what: StartTask, when: float) -> None:
        bare = what.node.path in self._done or isinstance(what.node.component.body, Dag)
        self._turns.add(what, when, needs_resources=not bare)

    def _start(self) -> None:
        """Begin what is ready, as long as there is room. Nothing begins while the database is
        away: another server may have claimed the run."""
        while (turn := self._turns.next(self._busy, time.monotonic())) is not None:
            self._recorder.keep_up()
            if turn.error is not None:
                self._take(
                    self._engine.task_ended(turn.start.node.path, TaskResult(error=turn.error))
                )
                continue
            try:
                if not self._recorder.away:
                    self._begin(turn.start, turn.environment)
                    continue
            except NoDatabase:  # nobody can tell whether the task need be run
                pass
            self._turns.release(turn.start.node.path)
            self._line_up(turn.start, time.monotonic() + _AWAY)

    def _begin(self, what: StartTask, given: TaskEnvironment) -> None:
        node = what.node
        if isinstance(node.component.body, Dag):
            self._take(self._engine.retry_group(node.path))
            return
        if node.path in self._done:
            outputs = outputs_of(node, self._done[node.path])
            self._take(self._engine.task_ended(node.path, TaskResult(outputs=outputs)))
            return
        if is_builtin(node):
            self._since.setdefault(node.path, time.monotonic())
            self._launch(BuiltinAttempt(node, self._place / node.path, self._volumes, self._facts))
            return
        try:
            variables, image = self._attempts.variables(node), self._attempts.image_digest(node)
        except BadInput as error:
            self._take(self._engine.task_ended(node.path, TaskResult(error=str(error))))
            return
        variables |= given.variables
        if node.path not in self._since:
            verdict = self._memo.decide(
                node,
                self._workers.task_variables(variables),
                image=image,
                reuse=self._reuse and node.task.reuse and not self._unseen(image, given),
            )
            self._since[node.path] = time.monotonic()
            if verdict.reused is None:
                self._attempts.prepare(node, variables)
                self._since[node.path] = time.monotonic()
            self._recorder.task_started(node, verdict)
            self._verdicts[node.path] = verdict
            if verdict.reused is not None:
                self._take(self._engine.task_ended(node.path, TaskResult(outputs=verdict.outputs)))
                return
        again = f"@{what.attempt}" if what.attempt > 1 else ""
        heard = self._recorder.sayings.listen(node.path)
        errand = TaskFiles(node, find_free_directory(self._place / f"{node.path}{again}"), heard)
        try:
            self._places[node.path] = self._volumes.mount(
                given.mount_points, mounted=image is not None
            )
        except VolumeError as error:
            self._take(self._engine.task_ended(node.path, TaskResult(error=str(error))))
            return
        self._launch(self._attempts.create(errand, variables, given.mount_points))

    def _unseen(self, image: str | None, given: TaskEnvironment) -> bool:
        """Whether a task may read, or leave, what nobody who reuses it would know of."""
        more = bool(given.mount_points or given.variables or self._pipeline.workspace)
        return given.shared or (image is not None and more)

    def _launch(self, attempt: Attempt) -> None:
        node = attempt.node
        self._watch(Change(node))
        self._busy[node.path] = attempt
        self._deadlines.start(node.path, node.component.platform.deadline, time.monotonic())
        attempt.start(self._finished.put)

    def _await(self) -> None:
        """Until a task ends, or one may be tried again, or it is time to look around."""
        if time.monotonic() - self._looked >= _LOOK:
            self._look_around()
        pause = _LOOK
        for when in (self._turns.next_time, self._deadlines.next()):
            if when is not None:
                pause = min(pause, max(0.0, when - time.monotonic()))
        self._recorder.at_rest.set()
        try:
            attempt = self._finished.get(timeout=pause)
        except queue.Empty:
            self._looked = 0.0
            return
        finally:
            self._recorder.at_rest.clear()
        path = attempt.node.path
        del self._busy[path]
        self._turns.release(path)
        self._tried.setdefault(path, []).append(attempt)
        self._memo.changed()
        for worker in self._workers.pop_finished():
            self._recorder.leaves(worker)
        self._volumes.unmount(self._places.pop(path, frozenset()))
        late_by = self._deadlines.end(path)
        outcome = TaskResult(error=late_by) if late_by else attempt.result()
        self._take(self._engine.task_ended(path, outcome))

    def _look_around(self) -> None:
        """Does somebody want it all to end, has anything taken too long, is anything gone?"""
        self._looked = time.monotonic()
        for late, number in self._deadlines.pop_expired(self._looked):
            if not late:
                raise _TooLong(self._deadlines.end(late))
            self._busy[late].stop(number)
        if self._recorder.canceled:
            raise KeyboardInterrupt
        self._workers.check_tasks()

    def _over(self, one: TaskFinished) -> None:
        node = one.node
        if self._done.pop(node.path, None) is not None:
            return  # and told already
        since = self._since.pop(node.path, None)
        took = None if since is None else time.monotonic() - since
        verdict = self._verdicts.pop(node.path, None)
        reused = verdict.reused if verdict else None
        why = one.why or (verdict.why if verdict else None)
        tried = self._tried.pop(node.path, [])
        change = Change(node, None, took, why, reused.task if reused else None)
        self._recorder.task_over(
            Told(
                node,
                tried,
                why,
                verdict,
                os.fspath(tried[-1].directory) if tried else None,
                done=lambda id_: self._watch(replace(change, execution=id_)),
            )
        )

    def _cancel(self) -> None:
        stopped = self._engine.cancel()
        waiting = dict(self._busy)
        for number, patience in ((signal.SIGTERM, _PATIENCE), (signal.SIGKILL, 60.0)):
            for attempt in waiting.values():
                attempt.stop(number)
            until = time.monotonic() + patience
            while waiting and (left := until - time.monotonic()) > 0:
                try:
                    ended = self._finished.get(timeout=left)
                except queue.Empty:
                    break
                waiting.pop(ended.node.path, None)
                self._tried.setdefault(ended.node.path, []).append(ended)
        for one in stopped:
            self._over(one)
