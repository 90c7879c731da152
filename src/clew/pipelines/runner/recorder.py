"""A run in the graph: it and its tasks as activities, told in a thread of its own as they happen.

What a task read and wrote is told by the execution that ran it; its activity adds what only the
pipeline knows: its parameters, which file is which artifact, and how it ended. Nobody waits for
what is being told, and what waits meanwhile is told together.

While the database is away, events wait in memory and in `.clew/pending`, so that the next process
that resumes the run knows of them even if this one is killed. Folding is a union of facts whose
numbers are given out once: events may be folded again when it is unknown whether the first attempt
took effect.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs
from msgspec.structs import replace

from clew import db
from clew.errors import NoDatabase, NotFound
from clew.pipelines.engine.scopes import Node
from clew.pipelines.runner import event_journal
from clew.pipelines.runner.cancellation import is_cancel_requested
from clew.pipelines.runner.live_logs import Sayings
from clew.pipelines.runner.task_reuse import CACHE, Verdict
from clew.pipelines.spec.values import Artifact, Values
from clew.pipelines.tasks.attempt import Attempt
from clew.project_directory import ProjectDirectory
from clew.prov.event_numbers import TASK_PARAMETERS
from clew.prov.events import AnyEvent, Ended, Informed, Started
from clew.prov.graph import Graph
from clew.prov.queries.executions import find_execution
from clew.prov.queries.pipelines.tasks import TASK_PROGRAM, FinishedTask, find_first_process
from clew.run import execution_locks, malloc_trim, recovery
from clew.run.session.worker_session import WorkerSession
from clew.settings import Settings, machine_id
from clew.store.errors import from_os
from clew.witness import environment

_PAUSE = 0.5
"""Seconds between looks at whether the database is back."""
_PATIENCE = 10.0
"""Seconds in which an execution that was recorded while the database was away is folded."""
_GATHERING = 0.02
"""Seconds in which what happens is told together."""
_BUSY = 0.1
"""Seconds for which telling waits at most until the run waits for a task."""
_AHEAD = 32
"""Tasks that may have run and not be told yet."""
_MANY = 50
"""Tasks that are told until it is worth the time to give memory back."""


class Earlier(Struct, frozen=True):
    """A run that ended, or was ended, before all was done."""

    uid: str
    told: int
    """How much was told of it."""
    facts: dict[str, str]
    done: dict[str, FinishedTask]
    seconds: float
    """How long it ran."""


class Told(Struct, frozen=True, eq=False):
    """A task that is over, to be told: with all its attempts, and whether it was reused."""

    node: Node
    attempts: Sequence[Attempt] = ()
    why: str | None = None
    verdict: Verdict | None = None
    place: str | None = None
    done: Callable[[str | None], None] = lambda _: None
    """Called with its execution's id when it is told."""
    said: Path | None = None
    """Where what it printed can be read until then."""
    seconds: float | None = None
    """How long it ran, since this run began or was resumed."""
    at: int = field(default_factory=time.time_ns)


class _Batch(Struct, eq=False):
    """What is told together."""

    started: list[AnyEvent]
    over: list[Told]
    own: list[list[AnyEvent]]
    """What was seen of the attempts of each task."""
    ends: list[AnyEvent]
    """How each task ended. Where it made files, the graph knows more of them: see `journal`."""
    last: list[AnyEvent]
    """The ends of workers, and of the run."""
    leaving: list[WorkerSession]
    kept: Path | None = None
    """Where it waits on disk, in case that this process is killed."""


class Recorder:
    """Tells the graph of one run. The lock it holds says that the run goes on."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        earlier: Earlier | None = None,
        *,
        uid: str | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`earlier`: a run that is gone on with; `uid`: what a new one is called; `say` is told
        when the database is away."""
        self.uid = earlier.uid if earlier else uid or os.urandom(16).hex()
        self.number = 0
        self._earlier = earlier
        self._began = time.time_ns()
        self.failure: Exception | None = None
        """Why nothing more is told."""
        self.away = False
        """Whether the database cannot be told what happened, and is waited for."""
        self._say = say
        self._pending: list[_Batch] = []
        self._directory = directory
        self._settings = settings
        self._machine = machine_id(settings)
        self._numbers = itertools.count(earlier.told + 1 if earlier else 1)
        self._begun: set[str] = set()
        self._queue: queue.SimpleQueue[AnyEvent | Told | WorkerSession | None] = queue.SimpleQueue()
        self.at_rest = threading.Event()
        """Set while the run waits for tasks: then telling takes no time from it."""
        self._ending = threading.Event()
        self._behind = 0
        self._told = 0
        self._caught_up = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._lock = execution_locks.create_spool(directory, self.uid)
        self.sayings = Sayings(directory.spool / self.uid)

    @property
    def id(self) -> str:
        return f"r{self.number}"

    @property
    def canceled(self) -> bool:
        return is_cancel_requested(self._directory, self.uid)

    def begin(self) -> None:
        """Give the run its number."""
        with self.graph() as graph:
            self.number = graph.begin_run(self.uid)
        self._thread.start()

    def forget(self) -> None:
        """The run never began."""
        with self.graph() as graph:
            graph.remove(self.uid)

    def finish(self) -> None:
        """Wait until all is told."""
        self._ending.set()
        self.at_rest.set()
        self._queue.put(None)
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        shutil.rmtree(self._directory.spool / self.uid, ignore_errors=True)
        os.close(self._lock)

    # -- what happened

    def started(self, name: str, inputs: Values, tasks: Sequence[str], **more: Any) -> None:
        """`more`: what is needed to go on with it, should it not come to its end."""
        facets = {
            "pipeline": name,
            "inputs": inputs.parameters,
            "tasks": list(tasks),
            **more,
        }
        self._queue.put(
            Started(
                **self._now(),
                activity=self.uid,
                kind="run",
                agent=environment.user_name(os.getuid()),
                facets=facets,
            )
        )

    def ended(self, state: str, outputs: Values, error: str | None) -> None:
        told = {**outputs.parameters, **_shown(outputs.artifacts)}
        status = 0 if state == "succeeded" else 1
        facets: dict[str, Any] = {"state": state, "outputs": told, "error": error}
        if self._earlier:  # the time between its end and its resumption does not count
            facets["seconds"] = self._earlier.seconds + (time.time_ns() - self._began) / 1e9
        self._queue.put(Ended(**self._now(), activity=self.uid, status=status, facets=facets))

    def task_started(self, node: Node, verdict: Verdict | None = None) -> None:
        """`verdict`: by its key a later one will find it, unless it only stands for another."""
        if node.path in self._begun:
            return
        self._begun.add(node.path)
        facets: dict[str, Any] = {
            "parameters": node.inputs.parameters,
            "artifacts": _shown(node.inputs.artifacts),
            "platform": dict(node.component.platform.ignored),
        }
        key = verdict.key if verdict and not verdict.reused else None
        if key:
            facets["begun"] = {}
        self._queue.put(
            Started(
                **self._now(),
                activity=self._activity(node),
                kind="task",
                parent=self.uid,
                name=node.path,
                exe=TASK_PROGRAM if key else None,
                command=(key,) if key else (),
                cwd="" if key else None,
                facets=facets,
            )
        )

    def keep_up(self) -> None:
        """Wait until few that ran are left to tell: what was seen of them is in memory."""
        with self._caught_up:
            self._caught_up.wait_for(lambda: self._behind < _AHEAD or self.away)

    def task_over(self, told: Told) -> None:
        self.task_started(told.node)
        if not told.node.repeatable:
            self._begun.remove(told.node.path)
        with self._caught_up:
            self._behind += bool(told.attempts)
        self._queue.put(replace(told, said=self.sayings.over(told.node.path)))

    def leaves(self, worker: WorkerSession) -> None:
        """It gets no more tasks."""
        self._queue.put(worker)

    # -- telling it

    def _run(self) -> None:
        going = True
        while going or self._pending:
            waiting = self._waiting()
            going = going and None not in waiting
            told = 0
            try:
                found = [one for one in waiting if one is not None]
                if self.failure is None and found:
                    self._pending.append(self._batch(found))
                told = self._tell_all()
            except OSError as error:
                self.failure = from_os(error, doing="record the run")
            except Exception as error:  # whatever it is, the tasks go on to their end
                self.failure = error
            if self.failure is not None:
                self._give_up()
            with self._caught_up:
                self._behind = self._behind - told if self.failure is None else 0
                self._caught_up.notify()
            self._give_back(told)

    def _give_up(self) -> None:
        for batch in self._pending:
            for worker in batch.leaving:
                worker.discard()
        self._pending.clear()

    def _waiting(self) -> list[AnyEvent | Told | WorkerSession | None]:
        """What happened since; nothing, where the database is to be tried again."""
        try:
            found = [self._queue.get(timeout=_PAUSE if self._pending else None)]
        except queue.Empty:
            return []
        self._ending.wait(_GATHERING)
        self.at_rest.wait(_BUSY)
        while not self._queue.empty():
            found.append(self._queue.get())
        return found

    def _give_back(self, told: int) -> None:
        """What the workers needed, and telling; of a long run, and at its end."""
        before, self._told = self._told, self._told + told
        if self._told // _MANY > before // _MANY or (self._ending.is_set() and before >= _MANY):
            malloc_trim.trim_heap()

    def _batch(self, waiting: Sequence[AnyEvent | Told | WorkerSession]) -> _Batch:
        started = [self._numbered(one) for one in waiting if isinstance(one, Started)]
        over = [one for one in waiting if isinstance(one, Told)]
        own = self._witnessed(over)
        # those that have files are folded later, and so are numbered later
        ordered = sorted(over, key=lambda one: bool(one.attempts and one.node.outputs.artifacts))
        ends: list[AnyEvent] = [self._over(one) for one in ordered]
        leaving = [one for one in waiting if isinstance(one, WorkerSession)]
        last = [event for worker in leaving for event in _last_events(worker)]
        last += [self._numbered(one) for one in waiting if isinstance(one, Ended)]
        return _Batch(started, over, own, ends, last, leaving)

    def _tell_all(self) -> int:
        """Tell what waits, in order; the answer is how many tasks that ran were told. While the
        database is away all stays, and is kept on disk as well."""
        told = 0
        while self._pending:
            batch = self._pending[0]
            try:
                with self.graph() as graph:
                    ids = self._tell(graph, batch)
            except NoDatabase as error:
                if not self.away:
                    self._say(f"{error.message}; the run is recorded when the database answers")
                self.away = True
                self._keep()
                break
            self.away = False
            del self._pending[0]
            self._told_of(batch, ids)
            told += sum(bool(one.attempts) for one in batch.over)
        return told

    def _tell(self, graph: Graph, batch: _Batch) -> list[str | None]:
        """All of it may be done twice."""
        self._recover(batch.over)
        events = [*batch.started]
        for one, seen in zip(batch.over, batch.own, strict=True):
            events += [*seen, *self._informed(graph, one, seen)]
        later = [end for end in batch.ends if event_journal.lacks_files(end)]
        graph.fold([*events, *(end for end in batch.ends if not event_journal.lacks_files(end))])
        # what their executions made is known by now; and the run ends after its tasks
        ends = [event_journal.with_files(graph, end, self._machine) for end in later]
        graph.fold([*ends, *batch.last])
        return [self._execution(graph, one) for one in batch.over]

    def _told_of(self, batch: _Batch, ids: Sequence[str | None]) -> None:
        if batch.kept is not None:
            batch.kept.unlink(missing_ok=True)
        for worker in batch.leaving:
            worker.discard()
        for one, execution in zip(batch.over, ids, strict=True):
            if one.said is not None:
                one.said.unlink(missing_ok=True)
            one.node.release()
            one.done(execution)

    def _keep(self) -> None:
        """What waits, on disk as well, as far as there is room."""
        for batch in self._pending:
            if batch.kept is None:
                seen = [event for own in batch.own for event in own]
                events = [*batch.started, *seen, *batch.ends, *batch.last]
                with contextlib.suppress(OSError):
                    batch.kept = event_journal.write(self._directory, self.uid, events)

    def _witnessed(self, over: Sequence[Told]) -> list[list[AnyEvent]]:
        """What was seen of the attempts of each task, with the bytes it names stored."""
        sessions: dict[str, WorkerSession] = {}
        found = []
        for one in over:
            own: list[AnyEvent] = []
            for attempt in one.attempts:
                session, events = attempt.events()
                own += events
                if session is not None:
                    sessions[session.uid] = session
            found.append(own)
        for session in sessions.values():
            session.flush()
        return found

    def _recover(self, over: Sequence[Told]) -> None:
        """Fold the executions that were recorded while the database was away."""
        executions = {attempt.execution for one in over for attempt in one.attempts} - {None}
        until = time.monotonic() + _PATIENCE
        while any((self._directory.spool / str(uid)).exists() for uid in executions):
            for one in recovery.recover(self._directory, self._settings):
                if one.away:
                    raise NoDatabase(one.why)
            if time.monotonic() > until:
                return  # a later command tries again
            time.sleep(0.02)  # another process may be folding it

    def _informed(self, graph: Graph, one: Told, own: Sequence[AnyEvent]) -> list[AnyEvent]:
        """What the task was told by others without a file; of one that was reused, nothing new."""
        reused = one.verdict.reused if one.verdict else None
        execution = reused.execution if reused else _last(one.attempts)
        if execution is None:
            return []
        begun = (e for e in own if isinstance(e, Started) and e.execution == execution)
        told = (event.activity for event in begun if event.number == 1)
        process = next(told, None) or find_first_process(graph, execution)
        if process is None:
            return []
        one.node.process = process
        return [
            Informed(
                execution=execution,
                n=TASK_PARAMETERS,
                at=one.at,
                activity=process,
                by=before,
                via="parameter",
            )
            for before in sorted({node.process for node in one.node.producers if node.process})
            if not reused
        ]

    def _over(self, one: Told) -> Ended:
        node, verdict = one.node, one.verdict
        reused = verdict.reused if verdict else None
        executions = [attempt.execution for attempt in one.attempts if attempt.execution]
        if reused:
            executions = [reused.execution]
        facets = {
            "state": "reused" if reused else node.state,
            "outputs": node.outputs.parameters,
            "artifacts": reused.artifacts
            if reused
            else {
                name: [_described(artifact) for artifact in found]
                for name, found in node.outputs.artifacts.items()
            },
            "executions": executions,
            "why": one.why,
            "error": node.error,
            "place": one.place,
            "inputs": _shown(node.inputs.artifacts),
            "reused_from": reused.task if reused else None,
            **({"key": verdict.key, "parts": verdict.parts} if verdict else {}),
            **({"seconds": one.seconds} if self._earlier and one.seconds is not None else {}),
        }
        activity = self._activity(node)
        number = next(self._numbers)
        return Ended(execution=self.uid, n=number, at=one.at, activity=activity, facets=facets)

    def _execution(self, graph: Graph, one: Told) -> str | None:
        uid = _last(one.attempts)
        try:
            return find_execution(graph, uid).id if uid else None
        except NotFound:  # it could not be recovered yet
            return None

    def _activity(self, node: Node) -> str:
        return f"{self.uid}/{node.path}"

    def _now(self) -> dict[str, Any]:
        return {"execution": self.uid, "n": 0, "at": time.time_ns()}

    def _numbered(self, event: AnyEvent) -> AnyEvent:
        """Numbers are given out as things are told: who has read up to one has missed nothing."""
        return structs.replace(event, n=next(self._numbers))

    @contextlib.contextmanager
    def graph(self) -> Iterator[Graph]:
        address = self._settings.graph
        with db.connect(self._directory.graph, address=address, cache=CACHE) as connection:
            yield Graph(connection, self._directory.uid)


def _last_events(worker: WorkerSession) -> list[AnyEvent]:
    """End a worker; what is left to tell of it."""
    worker.close()
    events = worker.last_events()
    worker.flush()
    return events


def _last(attempts: Sequence[Attempt]) -> str | None:
    """The execution of the last attempt that came to one."""
    return next((one.execution for one in reversed(attempts) if one.execution), None)


def _shown(artifacts: dict[str, list[Artifact]]) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [{"uri": one["uri"], "type": one["type"]["schemaTitle"]} for one in found]
        for name, found in artifacts.items()
    }


def _described(one: Artifact) -> dict[str, Any]:
    """An artifact without what its execution knows of its file."""
    return {
        "name": one["name"],
        "uri": one["uri"],
        **({"custom_path": one["custom_path"]} if one.get("custom_path") else {}),
        "type": one["type"]["schemaTitle"],
        "metadata": one.get("metadata") or {},
    }
