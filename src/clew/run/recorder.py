"""One command, run here and recorded.

The order is what keeps the record true through a crash at any moment: the lock first (it says
"running"), then the execution's beginning, then the command; at the end the bytes are synced
before the graph names them, and the end is folded in the same transaction as the rest. Until
that is done the trace stays in the spool, so that whoever comes next can tell it.

Before the command has started, whatever is wrong is an error; from then on the command's end
and status are its own, and what is wrong with the record is a warning. One thing does not keep a
command from starting: a database that cannot be reached. The record then stays in the spool, and
recovery folds it once the database answers.
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
from clew.project_directory import Folder, own
from clew.prov.event_kinds import LOST_CONTENT, LOST_TRACE
from clew.prov.events import AnyEvent, Ended, Started
from clew.prov.graph import AT_ONCE, Graph, check_name
from clew.prov.queries.executions import execution as execution_of
from clew.prov.text import shown
from clew.redaction import Redactor
from clew.redaction.globs import escape
from clew.run import execution_events, execution_locks, record_errors, recovery
from clew.run.launch import signal_forwarding, tracer_process
from clew.run.launch.execution_host import ExecutionHost, LaunchOptions, LocalHost
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

_ASK_AGAIN = 60.0
"""Seconds after which a database that did not answer is asked again."""


def execute(
    folder: Folder,
    settings: Settings,
    command: Sequence[str],
    *,
    name: str | None = None,
    content: bool = True,
    exclude: Sequence[str] = (),
    pins: Pins = UNPINNED,
    begun: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run `command` as if alone; record what it read, wrote and looked for. `begun` is told the
    uid before the command starts."""
    outer = tracer_binary.outer_execution()
    if outer is not None:
        from clew.run import nested_exec  # rarely needed

        return nested_exec.run_nested(folder, settings, command, outer, pins)
    tracer_binary.require()
    host = LocalHost(settings)
    return record(
        folder,
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
    folder: Folder,
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
    """Run `command` on this host, and record it. `decider` knows what of it need not run;
    `label`: what to call its first process where the command says little."""
    return _Recording(
        folder, settings, tuple(command), host, name, content, tuple(exclude), pins, decider, label
    ).run(begun)


class _Recording:
    """The steps of one execution, and what they share."""

    def __init__(
        self,
        folder: Folder,
        settings: Settings,
        command: tuple[str, ...],
        host: ExecutionHost,
        name: str | None,
        content: bool,
        exclude: tuple[str, ...],
        pins: Pins,
        decider: Decider | None,
        label: str | None,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._command = command
        self._host = host
        self._name = name
        self._content = content
        self._exclude = (*folder.exclude, *exclude)
        self._withheld = (
            *self._exclude,
            *folder.credential_files(host.environ, host.cwd),
            *map(escape, host.credential_files),
        )
        self._pins = pins
        self._decider = decider
        self._label = label
        self._uid = os.urandom(16).hex()
        self._number: int | None = None  # its id is not known until the database answers
        self._redactor = Redactor(host.environ, settings.redact, key=folder.key)
        self._redactor.add_secrets(host.secrets)
        for values in host.credential_files.values():
            self._redactor.add_values(values)
        self._redactor.learn_command([shown(word) for word in command])
        self._whole_or_none = host.derivation is not None
        self._away: NoDatabase | None = None
        self._ask_again = 0.0

    def run(self, begun: Callable[[str], None]) -> Outcome:
        with record_errors.fail_before_start(self._folder):
            self._note_absence(recovery.recover(self._folder, self._settings))
            self._place = record_errors.file_identity(self._folder.path)
            self._lock = execution_locks.create_spool(self._folder, self._uid)
            disk_reserve.make(self._folder.path)  # of an older project, or used up
        self._spool = self._folder.spool / self._uid
        self._settled = True  # nothing is left to tell
        self._postponed = False  # what is left can only be told later
        try:
            with record_errors.fail_before_start(self._folder):
                begun(self._uid)
            return self._recorded()
        finally:
            if self._settled:
                shutil.rmtree(self._spool, ignore_errors=True)
            os.close(self._lock)
            self._host.close()
            if not self._settled and not self._postponed and self._away is None:
                recovery.recover(self._folder, self._settings)

    def _recorded(self) -> Outcome:
        with record_errors.fail_before_start(self._folder):
            store = Store(self._folder.store, lease=self._uid)
        try:
            contents = ContentCapture(
                store, spool=self._spool, keep=self._content, exclude=self._withheld
            )
            with record_errors.fail_before_start(self._folder):
                started = self._begin()
            try:
                kept, status, follower = self._watch(contents, started)
            except BaseException:
                if self._settled:
                    self._forget()
                raise
            trace = follower.records
            whole = record_errors.is_complete(trace)
            if whole and not any(isinstance(record, Exec | Reused) for record in trace):
                self._forget()
                raise record_errors.cannot_start(self._command[0], status)
            return self._ending(store, contents, follower, kept, status, whole)
        finally:
            with contextlib.suppress(ClewError):  # what it could not write was said already
                store.close()

    # -- the beginning

    @contextlib.contextmanager
    def _graph(self) -> Iterator[Graph]:
        """Opened when needed, not held meanwhile: a server may be restarted while we run. One that
        did not answer is not asked again at once: the command's result would wait for it twice."""
        if self._away is not None and time.monotonic() < self._ask_again:
            raise self._away
        patience = None if self._whole_or_none else recovery.PATIENCE
        try:
            with db.connect(
                self._folder.graph, address=self._settings.graph, patience=patience
            ) as connection:
                yield Graph(connection, self._folder.uid)
        except NoDatabase as error:
            self._away = error
            self._ask_again = time.monotonic() + _ASK_AGAIN
            raise

    def _note_absence(self, unsettled: list[recovery.UnrecoveredExecution]) -> None:
        """Do not ask a database that has just kept recovery waiting."""
        for one in unsettled:
            if one.away:
                self._away = NoDatabase(one.why, hint="check CLEW_GRAPH and that the server runs")
                self._ask_again = time.monotonic() + _ASK_AGAIN

    def _begin(self) -> Started:
        self._beginning = execution_events.build_start(
            self._uid,
            self._host,
            self._redactor,
            self._command,
            name=self._name,
            pins=self._pins,
        )
        started = self._beginning.event
        self._note(started, {}, whole_or_none=True)  # nothing has begun yet
        if self._name is not None:
            check_name(self._name)
        derivation = self._host.derivation
        parent = derivation.parent if derivation else None
        try:
            with self._graph() as graph:
                self._number = graph.begin(self._uid, name=self._name, parent=parent)
                graph.fold([started])
        except NoDatabase:
            if self._whole_or_none:
                raise
        except BaseException:
            if self._number is not None:
                self._forget()
            raise
        return started

    def _note(self, started: Started, names: dict[str, str], *, whole_or_none: bool) -> None:
        words = recovery.RecoveryNote(
            started=started,
            keep=self._content,
            exclude=self._withheld,
            redact=self._settings.redact,
            streams=names,
            stream_limit=self._folder.stream_limit,
            label=self._label,
            whole_or_none=whole_or_none,
        )
        recovery.write_note(self._spool, words)

    def _forget(self) -> None:
        """The command never began, so nothing of it stays in the graph. Where the graph cannot be
        written now, the note makes recovery remove it."""
        self._settled = False
        with contextlib.suppress(OSError):
            self._note(self._beginning.event, {}, whole_or_none=True)
        with contextlib.suppress(ClewError), self._graph() as graph:
            graph.remove(self._uid)
            self._settled = True

    # -- the middle

    def _watch(
        self, contents: ContentCapture, started: Started
    ) -> tuple[streams.Streams, int, TraceFollower]:
        demand = StdinDemand()
        trace = self._spool / "trace"
        with record_errors.fail_before_start(self._folder):
            kept = self._host.prepare(
                self._spool,
                redactor=self._redactor,
                limit=self._folder.stream_limit,
                demand=demand,
            )
            self._streams = kept.names
            names = {os.fsdecode(n): stream for n, stream in kept.names.items()}
            self._note(started, names, whole_or_none=self._whole_or_none)
            said, notify = os.pipe()
            follower = TraceFollower(trace, said, contents, demand)
            server = self._decision_server()
        with signal_forwarding.forward_signals(lambda: self._host.target(follower.root)) as blocked:
            tracer = self._host.start(
                LaunchOptions(
                    command=self._command,
                    trace=trace,
                    spool=self._spool if self._content else None,
                    notify=notify,
                    exclude=self._exclude,
                    streams=kept,
                    blocked=blocked,
                    pins=self._pins,
                    ask=server.descriptor if server else None,
                )
            )
            self._settled = False
            os.close(notify)
            kept.started()
            files, given = self._host.ready()
            contents.seen(files, given)
            follower.start()
            if server is not None:
                from clew.run.launch.skip_protocol import RunContext

                server.start(RunContext(files, given, kept.names, self._redactor, contents))
            status = tracer_process.wait(tracer)
            if server is not None:
                server.finish()
            kept.finish()
        if server is not None and server.failure is not None:
            self._forget()
            raise record_errors.as_clew_error(server.failure)
        self._check_tracer(status, follower.finish())
        return kept, status, follower

    def _decision_server(self) -> DecisionServer | None:
        if self._decider is None:
            return None
        from clew.run.launch.skip_protocol import (
            DecisionServer,  # most executions have nobody to ask
        )

        return DecisionServer(self._decider)

    def _check_tracer(self, status: int, trace: list[AnyRecord]) -> None:
        if status > 0 and not trace:
            self._forget()
            raise record_errors.disk_full(self._folder.path) or self._host.refusal()
        if status < 0 or (status == 125 and not record_errors.is_complete(trace)):
            how = f"was ended by signal {-status}" if status < 0 else "failed"
            known = self._uid if self._number is None else f"e{self._number}"
            raise RecordingFailed(
                f"the tracer {how}, and the command with it",
                hint=f"clew show {known} tells what was seen until then",
            )

    # -- the end

    def _ending(
        self,
        store: Store,
        contents: ContentCapture,
        follower: TraceFollower,
        kept: streams.Streams,
        status: int,
        whole: bool,
    ) -> Outcome:
        """The command has ended, and its status is what it is: all that may come is a warning.
        What comes of another execution is there as a whole or not at all."""
        events: list[AnyEvent] = []
        warning: ClewError | None = None
        try:
            events, warning = self._events(store, contents, follower, kept, status, whole)
            if warning is not None and self._whole_or_none:
                raise warning
            if len(events) > AT_ONCE:  # several transactions: killed between two, nothing is lost
                recovery.write_events(self._spool, events)
            with self._graph() as graph:
                graph.fold(events)
                found = execution_of(graph, self._uid, alive=lambda _: False)
            self._still_there()
            self._settled = True
        except BaseException as error:  # also a fault of our own, or an interrupt
            if self._whole_or_none and isinstance(error, Exception):
                raise record_errors.disk_full(self._folder.path) or record_errors.as_clew_error(
                    error
                ) from error
            ended = self._keep(events)
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

    def _keep(self, events: list[AnyEvent]) -> Ended | None:
        """Leave the events in the spool for recovery; if that works, the answer is the last one."""
        if events:
            with contextlib.suppress(OSError):
                recovery.write_events(self._spool, events)
                last = events[-1]
                return last if isinstance(last, Ended) else None
        return None

    def _still_there(self) -> None:
        """A database whose file was removed may be written to without anybody noticing."""
        if record_errors.file_identity(self._folder.path) != self._place:
            self._settled = True
            raise NotFound(
                f"{self._folder.path} was removed while the command ran, and the record with it",
                hint="clew init makes a new project",
            )

    def _events(
        self,
        store: Store,
        contents: ContentCapture,
        follower: TraceFollower,
        kept: streams.Streams,
        status: int,
        whole: bool,
    ) -> tuple[list[AnyEvent], ClewError | None]:
        """All there is to fold, with the bytes it names stored; and what is missing in it."""
        builder = TraceConverter(
            machine=self._host.machine,
            boot=self._host.boot,
            variables=self._beginning.variables,
            sealed=self._beginning.sealed,
            redactor=self._redactor,
            ignore=own(self._folder, self._settings),
            contents=contents,
            owners=self._host.owners,
        )
        reused_subtrees = self._decider.reused_subtrees if self._decider else None
        built = builder.build(self._uid, follower.records, self._streams, reused_subtrees)
        events = [
            *execution_events.label_process(built.events, built.first, self._label),
            *execution_events.build_stream_events(self._uid, store, kept.kept, keep=self._content),
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
        if not whole:
            why = "the trace ends before the command did: was there no room for it?"
            events.append(execution_events.build_gap(self._uid, LOST_TRACE, "trace", why))
            warning = warning or RecordingFailed(why, hint="free some space, and run it again")
        facets = {
            "packages": self._host.packages(),
            "new_bytes": store.added,
            **kept.facets(),
        }
        events.append(
            execution_events.build_end(self._uid, built.story, status, built.bytes, facets)
        )
        return events, warning
