"""A witnessed command that lives on, and forks a child for each task of work that it is sent.

The command is an execution of its own, and so is every task (see `chronicles`). A task is closed
when its process has ended, while the command goes on; whatever it started and left running ends
with it.

The command has a socket as its input. It says `ready` there, and then answers each message with
the process id of the child that it forked for it, perhaps ahead; with the message comes the
descriptor that the child has as its output.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import ClewError, RecordingFailed
from clew.project_directory import Folder
from clew.prov.events import AnyEvent
from clew.redaction import Redactor
from clew.run import execution_events, execution_locks, record_errors
from clew.run.content_ingest import ContentIngest
from clew.run.launch import tracer_process
from clew.run.launch.execution_host import LaunchOptions, LocalHost
from clew.run.launch.pins import UNPINNED
from clew.run.session.forked_task import ForkedTask
from clew.run.session.task_output import OutputReader
from clew.run.session.trace_branches import TraceBranch, TraceSplitter
from clew.run.stdio import streams
from clew.settings import Settings
from clew.store import Store
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import Trace

if TYPE_CHECKING:
    from clew.run.session.session_events import SessionEvents

_STREAMS = {"stdin": {"kind": "other"}, "stdout": {"kind": "pipe"}, "stderr": {"kind": "stdout"}}
_READY_TIMEOUT = 60.0
"""Seconds until a command that does not say it is ready is given up."""
_LOST_AFTER = 2.0
"""Seconds after which a process that is gone, and of which nothing came, is given up: the tracer
tells of it at once."""


def _no_callback(_: ForkedTask) -> None:
    """Waits any more."""


class WorkerSession:
    """One such command; `send` may be called from one thread, `events` from another."""

    def __init__(
        self,
        folder: Folder,
        settings: Settings,
        command: Sequence[str],
        host: LocalHost,
        name: str,
    ) -> None:
        """`name`: what to call it in lineage."""
        self.uid = os.urandom(16).hex()
        self.count = 0
        """How many tasks it was sent."""
        self.unrecorded = 0
        """How many of them are not told yet."""
        self._folder = folder
        self._settings = settings
        self._command = tuple(command)
        self._host = host
        self._name = name
        self._redactor = Redactor(host.environ, settings.redact, key=folder.key)
        self._branches = TraceSplitter()
        self._tasks: dict[int, ForkedTask] = {}
        self._early: dict[int, TraceBranch] = {}  # seen before the command said whose they are
        self._lock = threading.Lock()  # of the tasks
        self._session_events: SessionEvents
        self._told = False
        self._silent: float | None = None  # since when nothing came from the tracer
        self.ended = False
        self.is_ready = False

    # -- the command

    def start(self) -> None:
        """Start the command; `await_ready` before anything else is asked of it."""
        with record_errors.fail_before_start(self._folder):
            self._held = execution_locks.create_spool(self._folder, self.uid)
            self._spool = self._folder.spool / self.uid
            self._store = Store(self._folder.store)
            folder, host = self._folder, self._host
            withheld = (*folder.exclude, *folder.credential_files(host.environ, host.cwd))
            self._contents = ContentCapture(
                self._store, spool=self._spool, keep=True, exclude=withheld
            )
            self._ingest = ContentIngest(self._contents)
            self._kept = streams.recreate_streams(
                self._spool,
                _STREAMS,
                redactor=self._redactor,
                limit=self._folder.stream_limit,
                stdin=None,
                show=None,
            )
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._socket = ours
            said, notify = os.pipe()
            self._notify = said
            self._trace = Trace(self._spool / "trace")
            _, out, error = self._kept.descriptors
            self._kept.descriptors = (theirs.fileno(), out, error)
            self._tracer = self._host.start(
                LaunchOptions(
                    command=self._command,
                    trace=self._spool / "trace",
                    spool=self._spool,
                    notify=notify,
                    exclude=self._folder.exclude,
                    streams=self._kept,
                    blocked=(),
                    pins=UNPINNED,
                    prompt=True,
                )
            )
        os.close(notify)
        theirs.close()
        self._kept.started()

    def await_ready(self) -> None:
        """Follow the command, and wait until it can be sent work."""
        self.is_ready = True
        self._output_reader = OutputReader(self._redactor, self._folder.stream_limit)
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._follower.start()
        self._prepare_events(self._contents)
        self._socket.settimeout(_READY_TIMEOUT)
        try:
            ready = self._socket.recv(16)
        except TimeoutError:
            ready = b""
        if ready != b"ready":
            self.close()
            said_by_it = (self._spool / "stdout").read_text(errors="replace")[-300:]
            self.discard()
            raise RecordingFailed(
                f"{self._command[0]} cannot run tasks: {said_by_it.strip() or 'it ended'}",
                hint=" ".join(self._command),
            )

    def _prepare_events(self, contents: ContentCapture) -> None:
        """What surrounds the command is looked at, and what tells of it loaded, while it starts."""
        from clew.run.session.session_events import SessionEvents

        beginning = execution_events.build_start(
            self.uid, self._host, self._redactor, self._command
        )
        beginning.event.facets["streams"] = _STREAMS
        self._session_events = SessionEvents(
            self._folder,
            self._settings,
            self._host,
            self._redactor,
            beginning,
            contents,
            self._store,
            self._branches,
            self._name,
        )

    def stale(self) -> str | None:
        """What of all that the command read is no longer as it was; None: nothing."""
        input_snapshot = self._session_events.input_snapshot
        return input_snapshot.changed() if input_snapshot else None

    def close(self) -> None:
        """No more will be asked: it ends, and all that was left running with it. A command that was
        never waited for is killed: its record is not kept."""
        self._socket.close()
        if self.is_ready:
            self._follower.join()
        else:
            os.kill(self._tracer, signal.SIGKILL)
            os.close(self._notify)
        tracer_process.wait(self._tracer)
        self._kept.finish()
        if self.is_ready:
            self._output_reader.close()
        self._trace.close()

    def discard(self) -> None:
        """All is told: nothing is left of it but the record."""
        with contextlib.suppress(ClewError):
            self._store.close()
        shutil.rmtree(self._spool, ignore_errors=True)
        os.close(self._held)

    # -- a task of work

    def send(
        self,
        message: bytes,
        command: Sequence[str],
        ended: Callable[[ForkedTask], None],
        *,
        heard: Callable[[str, Path], None] = lambda _, __: None,
        name: str | None = None,
    ) -> ForkedTask:
        """Let the command fork a child for this; `ended` is called when that is over, from another
        thread, and `heard` before it begins, with its uid and the file where its output is kept;
        `name`: what to call it where its command says little."""
        self.count += 1
        self.unrecorded += 1
        output = self._output_reader.open(self._spool / f"task-{self.count}")
        heard(uid := os.urandom(16).hex(), output.capture.path)
        began = time.time_ns()
        socket.send_fds(self._socket, [message], [output.descriptor])
        output.given()
        answer = self._socket.recv(32)
        if not answer.isdigit():
            output.finish()
            raise RecordingFailed(
                f"no process could be started: {answer.decode() or 'the worker has ended'}",
                hint="is there memory, and room for another process?",
            )
        task = ForkedTask(uid, tuple(command), int(answer), output, ended, began, name)
        with self._lock:
            if self.ended:
                task.lost = True
            else:
                self._tasks[task.pid] = task
                branch = self._early.pop(task.pid, None)
                if branch is not None:
                    task.branch = branch
        if task.lost:
            self._finish(task)
        elif task.branch is not None:
            self._look(task)
        return task

    def look(self) -> None:
        """Give up tasks whose processes are gone and whose ends will not be told: there was no
        room for the trace. To be called now and then."""
        now, silent = time.monotonic(), self._silent
        with self._lock:
            for task in self._tasks.values():
                if task.gone is None and not os.path.exists(f"/proc/{task.pid}"):
                    task.gone = now
            lost = [
                task
                for task in self._tasks.values()
                if silent is not None
                and task.gone is not None
                and now - max(silent, task.gone) > _LOST_AFTER
            ]
            for task in lost:
                del self._tasks[task.pid]
        for task in lost:
            task.lost = True
            self._finish(task)

    # -- following

    def _follow(self) -> None:
        while True:
            self._silent = time.monotonic()
            word = os.read(self._notify, 4096)
            self._silent = None
            new = self._trace.read()
            self._ingest.add(new)
            self._route(self._branches.take(new))
            self._ingest.go_on()
            if self._branches.exit is not None:
                self._left_alone()
            if not word:
                break
        os.close(self._notify)
        with self._lock:
            self.ended = True
            lost = list(self._tasks.values())
            self._tasks.clear()
        for task in lost:
            task.lost = True
            self._finish(task)

    def _left_alone(self) -> None:
        """The command has ended: so does all that it was asked for."""
        with self._lock:
            self.ended = True
            left: list[ForkedTask | TraceBranch] = [*self._tasks.values(), *self._early.values()]
        for one in left:
            one.stop(signal.SIGKILL)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # somebody may be waiting there

    def _route(self, branches: list[TraceBranch]) -> None:
        for branch in branches:
            with self._lock:
                task = self._tasks.get(branch.spawn.pid)
                if task is None:
                    self._early[branch.spawn.pid] = branch
                    continue
                task.branch = branch
            self._look(task)

    def _look(self, task: ForkedTask) -> None:
        """Is it over? What outlives its first process is ended."""
        branch = task.branch
        assert branch is not None
        if branch.exit is not None and branch.living:
            task.stop(signal.SIGKILL)
        if branch.over:
            with self._lock:
                known = self._tasks.pop(task.pid, None)
            if known is not None:
                self._finish(task)

    def _finish(self, task: ForkedTask) -> None:
        ended, task.ended = (
            task.ended,
            _no_callback,
        )  # who knows of whom: else both stay in memory
        ended(task)

    # -- telling

    def events(self, task: ForkedTask) -> list[AnyEvent]:
        """What there is to fold of a task that is over, and of the command itself before the
        first; what it names is put into the store, which the caller flushes."""
        assert task.branch is not None
        task.output.finish()
        with self._ingest.resting():
            told = [] if self._told else self._session_events.of_command(self._kept.names)
            self._told = True
            told += self._session_events.of_task(task, task.branch, self._ingest.failure)
        self._branches.forget(task.branch)
        self.unrecorded -= 1
        task.output.capture.path.unlink(missing_ok=True)
        return told

    def flush(self) -> None:
        self._store.flush()

    def last_events(self) -> list[AnyEvent]:
        """The end of the command itself, once it has ended."""
        if not self._told:
            return []
        return self._session_events.of_end(self._kept)
