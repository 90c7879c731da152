"""Run one command and record it: the centre of `clew exec`, of repeats and of pipeline tasks.

The order of the steps keeps the record correct through a crash at any moment:

1. take the execution's lock (it means "running") and make its spool directory;
2. write a recovery note to the spool, and the `started` event to the graph;
3. start the command under the tracer, and store the files that it reads while it runs;
4. convert the trace to events, sync the stored bytes, then fold all events. A long record takes
   several transactions; its events are saved to the spool before the first.

Until step 4 is done the trace stays in the spool, and `recovery` completes the record.

Before the command starts, every fault is an error. After that, the command's exit status is its
own, and a fault of the record is only a warning. An unreachable database does not keep a command
from starting: the record stays in the spool, and recovery folds it when the database answers.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from clew import db, disk_reserve
from clew.documents.ids import Uid
from clew.errors import ClewError, NoDatabase, NotFound
from clew.project_directory import ProjectDirectory, clew_paths
from clew.prov.events import AnyEvent, Ended
from clew.prov.graph import FOLD_BATCH, check_name
from clew.prov.locators import decode_text, file_locator
from clew.prov.queries.executions import get_execution
from clew.prov.queries.formats import execution_id
from clew.redaction import Redactor
from clew.redaction.names import escape_glob
from clew.run import execution_events, record_errors, recovery
from clew.run.graph_access import GraphAccess
from clew.run.launch import signal_forwarding, tracer_process
from clew.run.launch.execution_host import ExecutionHost, LaunchOptions
from clew.run.launch.pins import UNPINNED, Pins
from clew.run.recording_result import RecordingResult, unfolded_execution
from clew.run.spool_directories import SpoolDirectory
from clew.run.stdio.stdin_demand import StdinDemand
from clew.run.trace_follower import TraceFollower
from clew.settings import Settings
from clew.store import Store
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import AnyRecord, Exec, Reused

if TYPE_CHECKING:
    from clew.run.launch.skip_protocol import Decider, DecisionServer
    from clew.witness.syscalls.trace_conversion import TraceConverter


class CommandRecorder:
    """Records one execution; `record` is all that callers need.

    `decider` answers the tracer which programs can be skipped. `label` names the first process in
    lineage where the command itself says little. `uid` is that of the new execution, if it was
    chosen beforehand. A repeat or modification is recorded completely or not at all, because its
    sandbox is gone afterwards."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        command: Sequence[str],
        *,
        host: ExecutionHost,
        name: str | None = None,
        store_content: bool = True,
        exclude: Sequence[str] = (),
        pins: Pins = UNPINNED,
        decider: Decider | None = None,
        label: str | None = None,
        uid: Uid | None = None,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._command = tuple(command)
        self._host = host
        self._name = name
        self._store_content = store_content
        # The tracer saves no copies of `_exclude`. The capture only hashes `_not_stored`.
        self._exclude = (*directory.exclude, *exclude)
        self._not_stored = (
            *self._exclude,
            *directory.credential_files(host.environ, host.cwd),
            *map(escape_glob, host.credential_files),
        )
        self._pins = pins
        self._decider = decider
        self._label = label
        self._uid = uid or Uid(os.urandom(16).hex())
        self._number: int | None = None  # unknown until the database answers
        self._redactor = Redactor(host.environ, settings.redact, key=directory.key)
        self._redactor.add_secrets(host.secrets)
        for values in host.credential_files.values():
            self._redactor.add_values(values)
        self._redactor.learn_command([decode_text(word) for word in command])
        self._forget_incomplete = host.derivation is not None
        patience = db.PATIENCE if self._forget_incomplete else recovery.PATIENCE
        self._graph = GraphAccess(directory, settings, patience=patience)

    def record(self, begun: Callable[[Uid], None] = lambda _: None) -> RecordingResult:
        """Run and record the command. `begun` gets the uid before the command starts."""
        with record_errors.fail_before_start(self._directory):
            self._recover_killed()
            self._identity = record_errors.file_identity(self._directory.path)
            self._spool = SpoolDirectory(self._directory, self._uid)
        with self._hold_spool(), self._open_store(begun):
            try:
                self._write_start()
                status, follower = self._run_command()
            except BaseException:
                if not self._spool.needed:
                    self._forget()
                raise
            return self._finish(follower, status=status)

    # -- before the command

    def _recover_killed(self) -> None:
        """Complete the records of executions that were killed earlier."""
        for unrecovered in recovery.recover(self._directory, self._settings):
            if unrecovered.database_unreachable:  # do not wait for the same database again
                hint = "check CLEW_GRAPH and that the server runs"
                self._graph.mark_unreachable(NoDatabase(unrecovered.why, hint=hint))

    @contextlib.contextmanager
    def _hold_spool(self) -> Iterator[None]:
        """Close the spool and the host after the body. After an error, complete the record at
        once; after a result with a warning that would fail again, so a later recovery does it."""
        try:
            yield
        except BaseException:
            self._spool.close()
            self._host.close()
            if self._spool.needed and not self._graph.unreachable:
                recovery.recover(self._directory, self._settings)
            raise
        self._spool.close()
        self._host.close()

    @contextlib.contextmanager
    def _open_store(self, begun: Callable[[Uid], None]) -> Iterator[None]:
        with record_errors.fail_before_start(self._directory):
            disk_reserve.make(self._directory.path)  # a full disk may have used it up
            begun(self._uid)
            self._store = Store(self._directory.store, lease=self._uid)
        try:
            self._contents = ContentCapture(
                self._store,
                saved=self._spool.path,
                store_content=self._store_content,
                exclude=self._not_stored,
            )
            yield
        finally:
            with contextlib.suppress(ClewError):  # a failed write was reported already
                self._store.close()

    def _write_start(self) -> None:
        with record_errors.fail_before_start(self._directory):
            self._start = execution_events.build_start(
                self._uid,
                self._host,
                self._redactor,
                self._command,
                name=self._name,
                pins=self._pins,
            )
            self._write_note({}, forget_incomplete=True)  # until the command starts
            if self._name is not None:
                check_name(self._name)
            derivation = self._host.derivation
            parent = derivation.parent if derivation else None
            try:
                with self._graph.open() as graph:
                    self._number = graph.begin(self._uid, name=self._name, parent=parent)
                    graph.fold([self._start.event])
            except NoDatabase:
                if self._forget_incomplete:
                    raise

    def _write_note(self, streams: dict[str, str], *, forget_incomplete: bool) -> None:
        note = recovery.RecoveryNote(
            started=self._start.event,
            store_content=self._store_content,
            exclude=self._not_stored,
            redact=self._settings.redact,
            streams=streams,
            stream_limit=self._directory.stream_limit,
            label=self._label,
            forget_incomplete=forget_incomplete,
        )
        recovery.write_note(self._spool.path, note)

    def _forget(self) -> None:
        """Remove the execution from the graph: its command never started. If the graph cannot be
        written now, the note makes recovery remove it."""
        if self._number is None:
            return
        self._spool.needed = True
        with contextlib.suppress(OSError):
            self._write_note({}, forget_incomplete=True)
        with contextlib.suppress(ClewError), self._graph.open() as graph:
            graph.withdraw(self._uid)
            self._spool.needed = False

    # -- while the command runs

    def _run_command(self) -> tuple[int, TraceFollower]:
        demand = StdinDemand()
        trace = self._spool.path / "trace"
        with record_errors.fail_before_start(self._directory):
            self._captured = captured = self._host.open_streams(
                self._spool.path,
                redactor=self._redactor,
                limit=self._directory.stream_limit,
                demand=demand,
            )
            names = {os.fsdecode(n): stream for n, stream in captured.names.items()}
            self._write_note(names, forget_incomplete=self._forget_incomplete)
            notified, notify = os.pipe()
            follower = TraceFollower(trace, notified, self._contents, demand)
            server = self._decision_server()
        with signal_forwarding.forward_signals(
            lambda: self._host.signal_target(follower.root)
        ) as blocked:
            tracer = self._host.start(
                LaunchOptions(
                    command=self._command,
                    trace=trace,
                    save_to=self._spool.path if self._store_content else None,
                    notify=notify,
                    exclude=self._exclude,
                    streams=captured,
                    blocked=blocked,
                    pins=self._pins,
                    ask=server.descriptor if server else None,
                )
            )
            self._spool.needed = True  # from now on there is a record to complete
            os.close(notify)
            captured.started()
            files, provided = self._host.finish_start()
            self._contents.use_files(files, provided)
            follower.start()
            if server is not None:
                from clew.run.launch.skip_protocol import RunContext

                server.start(
                    RunContext(files, provided, captured.names, self._redactor, self._contents)
                )
            self._converter = self._create_converter()
            status = tracer_process.wait(tracer)
            if server is not None:
                server.finish()
            captured.finish()
        follower.finish()
        if server is not None and server.failure is not None:
            self._spool.needed = False
            raise record_errors.as_clew_error(server.failure)
        self._check_trace(status, follower.records)
        return status, follower

    def _check_trace(self, status: int, records: list[AnyRecord]) -> None:
        """Fail if the tracer failed, or if no program started: then there is nothing to record."""
        if status > 0 and not records:
            self._spool.needed = False
            full = record_errors.disk_full_error(self._directory.path)
            raise full or self._host.untraceable_error()
        shown = self._uid if self._number is None else execution_id(self._number)
        record_errors.check_tracer(status, records, shown)
        ran = any(isinstance(record, Exec | Reused) for record in records)
        if not ran and record_errors.is_complete(records):
            self._spool.needed = False
            raise record_errors.cannot_start_error(self._command[0], status)

    def _create_converter(self) -> TraceConverter:
        from clew.witness.syscalls.trace_conversion import TraceConverter  # while the command runs

        return TraceConverter(
            locate=partial(file_locator, self._host.machine),
            boot=self._host.boot,
            variables=self._start.variables,
            sealed=self._start.sealed,
            redactor=self._redactor,
            ignore=clew_paths(self._directory, self._settings),
            contents=self._contents,
            owners=self._host.owners,
            environ=self._host.environ,
        )

    def _decision_server(self) -> DecisionServer | None:
        if self._decider is None:
            return None
        from clew.run.launch.skip_protocol import DecisionServer  # only incremental repeats need it

        return DecisionServer(self._decider)

    # -- after the command

    def _finish(self, follower: TraceFollower, *, status: int) -> RecordingResult:
        """Fold the record. The command has ended and keeps its status, so a fault is a warning.
        A repeat is recorded completely or not at all, so its faults are errors."""
        events: list[AnyEvent] = []
        warning: ClewError | None = None
        try:
            events, warning = self._build_events(follower, status=status)
            if warning is not None and self._forget_incomplete:
                raise warning
            if len(events) > FOLD_BATCH:  # several transactions: a kill between two loses nothing
                recovery.write_events(self._spool.path, events)
            with self._graph.open() as graph:
                graph.fold(events)
                execution = get_execution(graph, self._uid, alive=lambda _: False)
            self._check_project_exists()
            self._spool.needed = False
        except BaseException as error:  # also a bug in Clew, or an interrupt
            if self._forget_incomplete and isinstance(error, Exception):
                full = record_errors.disk_full_error(self._directory.path)
                raise full or record_errors.as_clew_error(error) from error
            ended = self._save_events(events)
            if not isinstance(error, Exception):
                raise
            execution = unfolded_execution(
                self._uid, self._command, number=self._number, name=self._name, ended=ended
            )
            warning = record_errors.as_clew_error(error)
        return RecordingResult(execution=execution, status=status, warning=warning)

    def _save_events(self, events: list[AnyEvent]) -> Ended | None:
        """Save the events to the spool for recovery; return the `ended` event if that worked."""
        if events:
            with contextlib.suppress(OSError):
                recovery.write_events(self._spool.path, events)
                last = events[-1]
                return last if isinstance(last, Ended) else None
        return None

    def _check_project_exists(self) -> None:
        """Raise if the project was removed: SQLite writes to a deleted file without an error. The
        caller turns the error into a warning."""
        if record_errors.file_identity(self._directory.path) != self._identity:
            raise NotFound(
                f"{self._directory.path} was removed while the command ran, and the record with it",
                hint="clew init makes a new project",
            )

    def _build_events(
        self, follower: TraceFollower, *, status: int
    ) -> tuple[list[AnyEvent], ClewError | None]:
        """Convert the trace to events and store the bytes they name. The warning says what is
        missing in the record."""
        reused_subtrees = self._decider.reused_subtrees if self._decider else None
        converted = self._converter.build(
            self._uid, follower.records, self._captured.names, reused_subtrees
        )
        return execution_events.build_record(
            self._uid,
            converted,
            self._store,
            self._captured,
            self._contents.failure or follower.failure,
            status=status,
            complete=record_errors.is_complete(follower.records),
            packages=self._host.packages,
            label=self._label,
            store_content=self._store_content,
        )
