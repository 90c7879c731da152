"""Run one command and record it: the centre of `clew exec`, of repeats and of pipeline tasks.

The order of the steps keeps the record correct through a crash at any moment:

1. take the execution's lock (it means "running") and make its spool directory;
2. write the `started` event to the graph, and a recovery note to the spool;
3. start the command under the tracer, and store the files that it reads while it runs;
4. convert the trace to events, sync the stored bytes, then fold all events in one transaction.

Until step 4 is done the trace stays in the spool, and `recovery` completes the record.

Before the command starts, every fault is an error. After that, the command's exit status is its
own, and a fault of the record is only a warning. An unreachable database does not keep a command
from starting: the record stays in the spool, and recovery folds it when the database answers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from clew import db, disk_reserve
from clew.errors import ClewError, NoDatabase, NotFound, RecordingFailed
from clew.project_directory import ProjectDirectory, own
from clew.prov.event_numbers import LOST_CONTENT, LOST_TRACE
from clew.prov.events import AnyEvent, Ended, Started
from clew.prov.graph import FOLD_BATCH, Graph, check_name
from clew.prov.queries.executions import get_execution as execution_of
from clew.prov.text import decode_text
from clew.redaction import Redactor
from clew.redaction.globs import escape
from clew.run import execution_events, execution_locks, record_errors, recovery
from clew.run.launch import signal_forwarding, tracer_process
from clew.run.launch.execution_backend import ExecutionHost, LaunchOptions, LocalHost
from clew.run.launch.pins import UNPINNED, Pins
from clew.run.outcome import Outcome, unfolded_execution
from clew.run.stdio import streams
from clew.run.stdio.stdin_demand import StdinDemand
from clew.run.trace_follower import TraceFollower
from clew.settings import Settings
from clew.store import Store
from clew.witness.syscalls import tracer_binary
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_conversion import TraceConverter
from clew.witness.syscalls.trace_format import AnyRecord, Exec, Reused

if TYPE_CHECKING:
    from clew.run.launch.skip_protocol import Decider, DecisionServer

_RETRY_AFTER = 60.0
"""Seconds after which a database that did not answer is asked again."""


def execute(
    directory: ProjectDirectory,
    settings: Settings,
    command: Sequence[str],
    *,
    name: str | None = None,
    content: bool = True,
    exclude: Sequence[str] = (),
    pins: Pins = UNPINNED,
    begun: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run `command` on this machine and record it. `begun` gets the uid before the command starts.

    Inside another execution no second record is made: the outer one already sees everything."""
    outer = tracer_binary.outer_execution()
    if outer is not None:
        from clew.run import nested_exec  # rarely needed

        return nested_exec.run_nested(directory, settings, command, outer, pins)
    tracer_binary.require()
    host = LocalHost(settings)
    return record(
        directory,
        settings,
        command,
        host=host,
        name=name,
        content=content,
        exclude=exclude,
        pins=pins,
        begun=begun,
    )


def record(
    directory: ProjectDirectory,
    settings: Settings,
    command: Sequence[str],
    *,
    host: ExecutionHost,
    name: str | None = None,
    content: bool = True,
    exclude: Sequence[str] = (),
    pins: Pins = UNPINNED,
    decider: Decider | None = None,
    label: str | None = None,
    begun: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run `command` on `host` and record it.

    `decider` answers the tracer which programs can be skipped. `label` names the first process in
    lineage where the command itself says little."""
    recording = _Recording(
        directory,
        settings,
        tuple(command),
        host=host,
        name=name,
        content=content,
        exclude=tuple(exclude),
        pins=pins,
        decider=decider,
        label=label,
    )
    return recording.run(begun)


class _Recording:
    """The steps of one execution, and the state that they share."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        command: tuple[str, ...],
        *,
        host: ExecutionHost,
        name: str | None,
        content: bool,
        exclude: tuple[str, ...],
        pins: Pins,
        decider: Decider | None,
        label: str | None,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._command = command
        self._host = host
        self._name = name
        self._content = content
        self._exclude = (*directory.exclude, *exclude)
        self._not_stored = (
            *self._exclude,
            *directory.credential_files(host.environ, host.cwd),
            *map(escape, host.credential_files),
        )
        self._pins = pins
        self._decider = decider
        self._label = label
        self._uid = os.urandom(16).hex()
        self._number: int | None = None  # unknown until the database answers
        self._redactor = Redactor(host.environ, settings.redact, key=directory.key)
        self._redactor.add_secrets(host.secrets)
        for values in host.credential_files.values():
            self._redactor.add_values(values)
        self._redactor.learn_command([decode_text(word) for word in command])
        self._atomic = host.derivation is not None
        self._away: NoDatabase | None = None
        self._retry_at = 0.0

    def run(self, begun: Callable[[str], None]) -> Outcome:
        with record_errors.fail_before_start(self._directory):
            self._note_absence(recovery.recover(self._directory, self._settings))
            self._identity = record_errors.file_identity(self._directory.path)
            self._lock = execution_locks.create_spool(self._directory, self._uid)
            disk_reserve.make(self._directory.path)  # a full disk may have used it up
        self._spool = self._directory.spool / self._uid
        self._settled = True  # the spool holds nothing that recovery needs
        self._postponed = False  # recovery would fail now: leave the spool to a later one
        try:
            with record_errors.fail_before_start(self._directory):
                begun(self._uid)
            return self._record()
        finally:
            if self._settled:
                shutil.rmtree(self._spool, ignore_errors=True)
            os.close(self._lock)
            self._host.close()
            if not self._settled and not self._postponed and self._away is None:
                recovery.recover(self._directory, self._settings)

    def _record(self) -> Outcome:
        with record_errors.fail_before_start(self._directory):
            store = Store(self._directory.store, lease=self._uid)
        try:
            contents = ContentCapture(
                store, spool=self._spool, keep=self._content, exclude=self._not_stored
            )
            with record_errors.fail_before_start(self._directory):
                started = self._write_start()
            try:
                captured, status, follower = self._run_command(contents, started)
            except BaseException:
                if self._settled:
                    self._forget()
                raise
            trace = follower.records
            complete = record_errors.is_complete(trace)
            if complete and not any(isinstance(record, Exec | Reused) for record in trace):
                self._forget()
                raise record_errors.cannot_start(self._command[0], status)
            return self._finish(
                store, contents, follower, captured, status=status, complete=complete
            )
        finally:
            with contextlib.suppress(ClewError):  # a failed write was reported already
                store.close()

    # -- before the command

    @contextlib.contextmanager
    def _graph(self) -> Iterator[Graph]:
        """Open the graph for one step: a database may restart while the command runs. One that did
        not answer is not tried again at once, so the command's result waits for it only once."""
        if self._away is not None and time.monotonic() < self._retry_at:
            raise self._away
        patience = db.PATIENCE if self._atomic else recovery.PATIENCE
        try:
            with db.connect(
                self._directory.graph, address=self._settings.graph, patience=patience
            ) as connection:
                yield Graph(connection, self._directory.uid)
        except NoDatabase as error:
            self._away = error
            self._retry_at = time.monotonic() + _RETRY_AFTER
            raise

    def _note_absence(self, unsettled: list[recovery.UnrecoveredExecution]) -> None:
        """Do not try a database that has just kept recovery waiting."""
        for execution in unsettled:
            if execution.away:
                self._away = NoDatabase(
                    execution.why, hint="check CLEW_GRAPH and that the server runs"
                )
                self._retry_at = time.monotonic() + _RETRY_AFTER

    def _write_start(self) -> Started:
        self._start = execution_events.build_start(
            self._uid,
            self._host,
            self._redactor,
            self._command,
            name=self._name,
            pins=self._pins,
        )
        started = self._start.event
        self._write_note(started, {}, atomic=True)  # forget it if we die before the command starts
        if self._name is not None:
            check_name(self._name)
        derivation = self._host.derivation
        parent = derivation.parent if derivation else None
        try:
            with self._graph() as graph:
                self._number = graph.begin(self._uid, name=self._name, parent=parent)
                graph.fold([started])
        except NoDatabase:
            if self._atomic:
                raise
        except BaseException:
            if self._number is not None:
                self._forget()
            raise
        return started

    def _write_note(self, started: Started, names: dict[str, str], *, atomic: bool) -> None:
        note = recovery.RecoveryNote(
            started=started,
            keep=self._content,
            exclude=self._not_stored,
            redact=self._settings.redact,
            streams=names,
            stream_limit=self._directory.stream_limit,
            label=self._label,
            atomic=atomic,
        )
        recovery.write_note(self._spool, note)

    def _forget(self) -> None:
        """Remove the execution from the graph: its command never started. If the graph cannot be
        written now, the note makes recovery remove it."""
        self._settled = False
        with contextlib.suppress(OSError):
            self._write_note(self._start.event, {}, atomic=True)
        with contextlib.suppress(ClewError), self._graph() as graph:
            graph.remove(self._uid)
            self._settled = True

    # -- while the command runs

    def _run_command(
        self, contents: ContentCapture, started: Started
    ) -> tuple[streams.Streams, int, TraceFollower]:
        demand = StdinDemand()
        trace = self._spool / "trace"
        with record_errors.fail_before_start(self._directory):
            captured = self._host.prepare(
                self._spool,
                redactor=self._redactor,
                limit=self._directory.stream_limit,
                demand=demand,
            )
            self._streams = captured.names
            names = {os.fsdecode(n): stream for n, stream in captured.names.items()}
            self._write_note(started, names, atomic=self._atomic)
            notified, notify = os.pipe()
            follower = TraceFollower(trace, notified, contents, demand)
            server = self._decision_server()
        with signal_forwarding.forward_signals(lambda: self._host.target(follower.root)) as blocked:
            tracer = self._host.start(
                LaunchOptions(
                    command=self._command,
                    trace=trace,
                    spool=self._spool if self._content else None,
                    notify=notify,
                    exclude=self._exclude,
                    streams=captured,
                    blocked=blocked,
                    pins=self._pins,
                    ask=server.descriptor if server else None,
                )
            )
            self._settled = False
            os.close(notify)
            captured.started()
            files, known = self._host.ready()
            contents.use_files(files, known)
            follower.start()
            if server is not None:
                from clew.run.launch.skip_protocol import RunContext

                server.start(RunContext(files, known, captured.names, self._redactor, contents))
            status = tracer_process.wait(tracer)
            if server is not None:
                server.finish()
            captured.finish()
        if server is not None and server.failure is not None:
            self._forget()
            raise record_errors.as_clew_error(server.failure)
        self._check_tracer(status, follower.finish())
        return captured, status, follower

    def _decision_server(self) -> DecisionServer | None:
        if self._decider is None:
            return None
        from clew.run.launch.skip_protocol import (
            DecisionServer,  # only incremental repeats need it
        )

        return DecisionServer(self._decider)

    def _check_tracer(self, status: int, trace: list[AnyRecord]) -> None:
        if status > 0 and not trace:
            self._forget()
            raise record_errors.disk_full(self._directory.path) or self._host.refusal()
        if status < 0 or (status == 125 and not record_errors.is_complete(trace)):
            how = f"was ended by signal {-status}" if status < 0 else "failed"
            known = self._uid if self._number is None else f"e{self._number}"
            raise RecordingFailed(
                f"the tracer {how}, and the command with it",
                hint=f"clew show {known} tells what was seen until then",
            )

    # -- after the command

    def _finish(
        self,
        store: Store,
        contents: ContentCapture,
        follower: TraceFollower,
        captured: streams.Streams,
        *,
        status: int,
        complete: bool,
    ) -> Outcome:
        """Fold the record. The command has ended and keeps its status, so a fault is a warning.
        An atomic execution (a repeat) is recorded completely or not at all."""
        events: list[AnyEvent] = []
        warning: ClewError | None = None
        try:
            events, warning = self._build_events(
                store, contents, follower, captured, status=status, complete=complete
            )
            if warning is not None and self._atomic:
                raise warning
            if len(events) > FOLD_BATCH:  # several transactions: a kill between two loses nothing
                recovery.write_events(self._spool, events)
            with self._graph() as graph:
                graph.fold(events)
                found = execution_of(graph, self._uid, alive=lambda _: False)
            self._check_project_exists()
            self._settled = True
        except BaseException as error:  # also a bug of ours, or an interrupt
            if self._atomic and isinstance(error, Exception):
                raise record_errors.disk_full(self._directory.path) or record_errors.as_clew_error(
                    error
                ) from error
            ended = self._save_events(events)
            if not isinstance(error, Exception):
                raise
            self._postponed = True
            found = unfolded_execution(
                self._uid,
                self._command,
                number=self._number,
                name=self._name,
                ended=ended,
            )
            warning = record_errors.as_clew_error(error)
        return Outcome(execution=found, status=status, warning=warning)

    def _save_events(self, events: list[AnyEvent]) -> Ended | None:
        """Save the events to the spool for recovery; return the `ended` event if that worked."""
        if events:
            with contextlib.suppress(OSError):
                recovery.write_events(self._spool, events)
                last = events[-1]
                return last if isinstance(last, Ended) else None
        return None

    def _check_project_exists(self) -> None:
        """Fail if the project was removed: SQLite writes to a deleted file without an error."""
        if record_errors.file_identity(self._directory.path) != self._identity:
            self._settled = True
            raise NotFound(
                f"{self._directory.path} was removed while the command ran, and the record with it",
                hint="clew init makes a new project",
            )

    def _build_events(
        self,
        store: Store,
        contents: ContentCapture,
        follower: TraceFollower,
        captured: streams.Streams,
        *,
        status: int,
        complete: bool,
    ) -> tuple[list[AnyEvent], ClewError | None]:
        """Convert the trace to events and store the bytes they name. The warning says what is
        missing in the record."""
        builder = TraceConverter(
            machine=self._host.machine,
            boot=self._host.boot,
            variables=self._start.variables,
            sealed=self._start.sealed,
            redactor=self._redactor,
            ignore=own(self._directory, self._settings),
            contents=contents,
            owners=self._host.owners,
            environ=self._host.environ,
        )
        reused_subtrees = self._decider.reused_subtrees if self._decider else None
        built = builder.build(self._uid, follower.records, self._streams, reused_subtrees)
        events = [
            *execution_events.label_process(built.events, built.first, self._label),
            *execution_events.build_stream_events(
                self._uid, store, captured.kept, keep=self._content
            ),
        ]
        warning = contents.failure or (
            record_errors.as_clew_error(follower.failure) if follower.failure else None
        )
        try:
            store.flush()
        except ClewError as error:
            warning = warning or error
        if warning is not None:
            why = f"not all was stored: {warning.message}"
            lost = execution_events.build_gap(self._uid, LOST_CONTENT, "content", why)
            events = [*record_errors.correct_stored(events, store), lost]
        if not complete:
            why = "the trace ends before the command did: was the disk full?"
            events.append(execution_events.build_gap(self._uid, LOST_TRACE, "trace", why))
            warning = warning or RecordingFailed(
                why, hint="free some space, then run the command again"
            )
        facets = {
            "packages": self._host.packages(),
            "new_bytes": store.added,
            **captured.facets(),
        }
        events.append(
            execution_events.build_end(self._uid, built.state, status, built.bytes, facets)
        )
        return events, warning
