"""A recorded command that stays alive and divides its work into steps, as the kernel of a notebook.

The command is an execution, and so is every step. The command marks where a step begins and ends
(`docs/formats/trace.md`), and talks to its recorder through a socket, its standard input.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Sequence
from functools import partial

from clew.documents.ids import Uid
from clew.errors import ClewError, RecordingFailed
from clew.project_directory import ProjectDirectory, clew_paths
from clew.prov.events import AnyEvent
from clew.prov.locators import decode_text, file_locator
from clew.redaction import Redactor
from clew.run import execution_events, record_errors
from clew.run.execution_events import ExecutionStart
from clew.run.launch import tracer_process
from clew.run.launch.execution_host import LaunchOptions, LocalHost
from clew.run.launch.pins import UNPINNED
from clew.run.session.capture_queue import CaptureQueue
from clew.run.session.trace_steps import StepSplitter, TraceStep
from clew.run.spool_directories import SpoolDirectory
from clew.run.stdio.streams import Streams
from clew.settings import Settings
from clew.store import Store
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_conversion import ConvertedTrace, TraceConverter
from clew.witness.syscalls.trace_format import Trace

_STEP_SECONDS = 60.0
"""How long the trace of a step that has ended may take to arrive."""


class StepSession:
    """One such command. `socket` is our end of its standard input."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        command: Sequence[str],
        host: LocalHost,
    ) -> None:
        self.uid = Uid(os.urandom(16).hex())
        self.spool = directory.spool / self.uid
        self.redactor = Redactor(host.environ, settings.redact, key=directory.key)
        self._directory = directory
        self._settings = settings
        self._command = tuple(command)
        self._host = host
        self._splitter = StepSplitter()
        self._steps: dict[str, TraceStep] = {}
        self._changed = threading.Condition()  # guards _steps and _ended
        self._ended = False

    def start(self) -> ExecutionStart:
        """Start the command; return the beginning of its record."""
        with record_errors.fail_before_start(self._directory):
            self._spool = SpoolDirectory(self._directory, self.uid)
            self._spool.needed = True
            self.store = Store(self._directory.store)
            host, directory = self._host, self._directory
            withheld = (*directory.exclude, *directory.credential_files(host.environ, host.cwd))
            contents = ContentCapture(
                self.store, saved=self.spool, store_content=True, exclude=withheld
            )
            self._queue = CaptureQueue(contents)
            self.socket, theirs = socket.socketpair()
            self._notified, notify = os.pipe()
            beginning = execution_events.build_start(self.uid, host, self.redactor, self._command)
            self._trace = Trace(self.spool / "trace")
            self._tracer = host.start(
                LaunchOptions(
                    command=self._command,
                    trace=self.spool / "trace",
                    save_to=self.spool,
                    notify=notify,
                    exclude=directory.exclude,
                    streams=Streams(descriptors=(theirs.fileno(), 1, 2), names={}, kept={}),
                    blocked=(),
                    pins=UNPINNED,
                    prompt=True,
                    steps=True,
                )
            )
        os.close(notify)
        theirs.close()
        self._converter = TraceConverter(
            locate=partial(file_locator, host.machine),
            boot=host.boot,
            variables=beginning.variables,
            sealed=beginning.sealed,
            redactor=self.redactor,
            ignore=clew_paths(directory, self._settings),
            contents=contents,
            owners=host.owners,
        )
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._follower.start()
        return beginning

    def convert_step(self, name: str, execution: Uid) -> tuple[ConvertedTrace, TraceStep]:
        """The events of a step that has ended, as those of an execution. The caller flushes the
        store before it folds them."""
        with self._changed:
            self._changed.wait_for(lambda: name in self._steps or self._ended, _STEP_SECONDS)
            step = self._steps.pop(name, None)
        if step is None:
            raise RecordingFailed("the trace of a cell is missing", hint="is the disk full?")
        with self._queue.paused():
            trace = self._splitter.trace_as_command(step)
            return self._converter.build(execution, trace, {}), step

    @property
    def failure(self) -> Exception | None:
        """Why some content was not stored."""
        return self._queue.failure

    def finish(self) -> tuple[int, list[AnyEvent]]:
        """Wait until the command has ended; its exit status, and the events of what it did outside
        of all steps."""
        self.socket.close()
        status = tracer_process.wait(self._tracer)
        self._follower.join()
        with self._queue.paused():
            built = self._converter.build(
                self.uid, self._splitter.descriptions.complete(self._splitter.own), {}
            )
        self.store.flush()
        facets = {"packages": self._host.packages(), "new_bytes": self.store.added}
        ended = execution_events.build_end(self.uid, built.state, status, built.bytes, facets)
        return status, [*built.events, ended]

    def stop(self) -> None:
        """End the command, and with it the session."""
        pid = self._splitter.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def discard(self) -> None:
        """Remove the spool: everything is recorded."""
        with contextlib.suppress(ClewError):
            self.store.close()
        self._trace.close()
        self._spool.needed = False
        self._spool.close()

    def describe_command(self) -> tuple[str, ...]:
        return self.redactor.arguments([decode_text(word) for word in self._command]).words

    def _follow(self) -> None:
        while True:
            data = os.read(self._notified, 4096)
            new = self._trace.read()
            self._queue.add(new)
            ended = self._splitter.add_records(new)
            if ended:
                with self._changed:
                    self._steps |= {step.name: step for step in ended}
                    self._changed.notify_all()
            self._queue.process()
            if not data:
                break
        os.close(self._notified)
        with self._changed:
            self._ended = True
            self._changed.notify_all()
