"""A recorded command that stays alive and forks a child for each task that it is sent.

The command is an execution, and so is every task (see `session_events`). A task ends with its
first process; its other processes are killed then. The command goes on.

The command's stdin is a socket. It sends `ready`, then answers each message with the process id
of the child that it forked for it, perhaps in advance. Each message carries the descriptor that
the child gets as its output.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clew.documents.ids import Uid
from clew.errors import ClewError, RecordingFailed
from clew.project_directory import ProjectDirectory
from clew.prov.events import AnyEvent
from clew.redaction import Redactor
from clew.run import execution_events, record_errors
from clew.run.launch import tracer_process
from clew.run.launch.execution_host import LaunchOptions, LocalHost
from clew.run.launch.pins import UNPINNED
from clew.run.session.capture_queue import CaptureQueue
from clew.run.session.forked_task import ForkedTask
from clew.run.session.task_stdio import OutputReader
from clew.run.session.trace_branches import TraceBranch, TraceSplitter
from clew.run.spool_directories import SpoolDirectory
from clew.run.stdio import streams
from clew.settings import Settings
from clew.store import Store
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import Trace

if TYPE_CHECKING:
    from clew.run.session.session_events import SessionEvents

_STREAMS = {"stdin": {"kind": "other"}, "stdout": {"kind": "pipe"}, "stderr": {"kind": "stdout"}}
_READY_TIMEOUT = 60.0
"""Seconds to wait for `ready`."""
_LOST_AFTER = 2.0
"""Seconds after which a task counts as lost if its process is gone and the trace does not say so:
the tracer normally reports it at once."""


def _no_callback(_: ForkedTask) -> None:
    """The callback of a task that has ended."""


class WorkerSession:
    """One such command. One thread may call `send` while another calls `events`."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        command: Sequence[str],
        host: LocalHost,
        name: str,
    ) -> None:
        """`name` labels the command in lineage."""
        self.uid = Uid(os.urandom(16).hex())
        self.count = 0
        """Number of tasks sent so far."""
        self.unrecorded = 0
        """Number of tasks whose events were not built yet."""
        self._directory = directory
        self._settings = settings
        self._command = tuple(command)
        self._host = host
        self._name = name
        self._redactor = Redactor(host.environ, settings.redact, key=directory.key)
        self._branches = TraceSplitter()
        self._tasks: dict[int, ForkedTask] = {}
        self._early: dict[
            int, TraceBranch
        ] = {}  # branches seen before the command sent their process ids
        self._lock = threading.Lock()  # guards _tasks and _early
        self._session_events: SessionEvents
        self._command_recorded = False
        self._silent: float | None = None  # when the tracer last fell silent
        self.ended = False
        self.is_ready = False

    # -- the command

    def start(self) -> None:
        """Start the command; call `await_ready` before `send`."""
        with record_errors.fail_before_start(self._directory):
            self._spool = SpoolDirectory(self._directory, self.uid)
            self._spool.needed = True
            self._store = Store(self._directory.store)
            directory, host = self._directory, self._host
            withheld = (*directory.exclude, *directory.credential_files(host.environ, host.cwd))
            self._contents = ContentCapture(
                self._store, saved=self._spool.path, store_content=True, exclude=withheld
            )
            self._capture_queue = CaptureQueue(self._contents)
            self._kept = streams.recreate_streams(
                self._spool.path,
                _STREAMS,
                redactor=self._redactor,
                limit=self._directory.stream_limit,
                stdin=None,
                show=None,
            )
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._socket = ours
            self._notify, notify = os.pipe()
            self._trace = Trace(self._spool.path / "trace")
            _, out, error = self._kept.descriptors
            self._kept.descriptors = (theirs.fileno(), out, error)
            self._tracer = self._host.start(
                LaunchOptions(
                    command=self._command,
                    trace=self._spool.path / "trace",
                    save_to=self._spool.path,
                    notify=notify,
                    exclude=self._directory.exclude,
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
        """Follow the trace, and wait until the command accepts tasks."""
        self.is_ready = True
        self._output_reader = OutputReader(self._redactor, self._directory.stream_limit)
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
            printed = (self._spool.path / "stdout").read_text(errors="replace")[-300:]
            self.discard()
            raise RecordingFailed(
                f"{self._command[0]} cannot run tasks: {printed.strip() or 'it ended'}",
                hint=" ".join(self._command),
            )

    def _prepare_events(self, contents: ContentCapture) -> None:
        """Collect the environment facets and import what builds events, meanwhile."""
        from clew.run.session.session_events import SessionEvents

        beginning = execution_events.build_start(
            self.uid, self._host, self._redactor, self._command
        )
        beginning.event.facets["streams"] = _STREAMS
        self._session_events = SessionEvents(
            self._directory,
            self._settings,
            self._host,
            self._redactor,
            beginning,
            contents,
            self._store,
            self._branches,
            self._name,
        )

    def _is_stale(self) -> bool:
        """Whether a file changed since the command read it."""
        input_snapshot = self._session_events.input_snapshot
        return input_snapshot is not None and input_snapshot.changed() is not None

    def close(self) -> None:
        """End the command and all its processes. A command that never became ready is killed and
        not recorded."""
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
        """Remove the spool: everything is recorded."""
        with contextlib.suppress(ClewError):
            self._store.close()
        self._spool.needed = False
        self._spool.close()

    # -- tasks

    def send(
        self,
        message: bytes,
        command: Sequence[str],
        ended: Callable[[ForkedTask], None],
        *,
        heard: Callable[[Uid, Path], None] = lambda _, __: None,
        name: str | None = None,
        may_be_stale: bool = False,
    ) -> ForkedTask | None:
        """Let the command fork a child for this task; None if a file changed since the command read
        it, unless it `may_be_stale`. That is checked while the child prepares itself, before it
        runs anything of the task.

        `heard` is called before the task starts, with its uid and the file of its output; `ended`
        is called from another thread when the task has ended. `name` labels it in lineage."""
        self.count += 1
        self.unrecorded += 1
        output = self._output_reader.open(self._spool.path / f"task-{self.count}")
        heard(uid := Uid(os.urandom(16).hex()), output.capture.path)
        began = time.time_ns()
        permission, permit = os.pipe()
        socket.send_fds(self._socket, [message], [output.descriptor, permission])
        output.close_write_end()
        os.close(permission)
        stale = not may_be_stale and self._is_stale()
        if not stale:
            with contextlib.suppress(BrokenPipeError):  # the worker could not start the child
                os.write(permit, b".")
        os.close(permit)
        answer = self._socket.recv(32)
        if stale:
            output.finish()
            output.capture.path.unlink(missing_ok=True)
            self.unrecorded -= 1
            return None
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

    def check_tasks(self) -> None:
        """End tasks whose processes are gone but whose ends are not in the trace (the disk was
        full). Call this from time to time."""
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
            data = os.read(self._notify, 4096)
            self._silent = None
            new = self._trace.read()
            self._capture_queue.add(new)
            self._route(self._branches.add_records(new))
            self._capture_queue.process()
            if self._branches.exit is not None:
                self._kill_tasks()
            if not data:
                break
        os.close(self._notify)
        with self._lock:
            self.ended = True
            lost = list(self._tasks.values())
            self._tasks.clear()
        for task in lost:
            task.lost = True
            self._finish(task)

    def _kill_tasks(self) -> None:
        """Kill all tasks: the command has ended."""
        with self._lock:
            self.ended = True
            left: list[ForkedTask | TraceBranch] = [*self._tasks.values(), *self._early.values()]
        for task in left:
            task.stop(signal.SIGKILL)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits there

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
        """Finish the task if it is over; kill what outlives its first process."""
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
        )  # breaks a reference cycle
        ended(task)

    # -- events

    def events(self, task: ForkedTask) -> list[AnyEvent]:
        """Build the events of a task that has ended; the first call adds the command's own.

        Content goes into the store; the caller flushes it before it folds the events."""
        assert task.branch is not None
        task.output.finish()
        with self._capture_queue.paused():
            events = (
                [] if self._command_recorded else self._session_events.of_command(self._kept.names)
            )
            self._command_recorded = True
            events += self._session_events.of_task(task, task.branch, self._capture_queue.failure)
        self._branches.forget(task.branch)
        self.unrecorded -= 1
        task.output.capture.path.unlink(missing_ok=True)
        return events

    def flush(self) -> None:
        self._store.flush()

    def last_events(self) -> list[AnyEvent]:
        """The events of the command's end, after it has ended."""
        if not self._command_recorded:
            return []
        return self._session_events.of_end(self._kept)
