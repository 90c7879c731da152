"""One command, run here and recorded.

The order is what keeps the record true through a crash at any moment: the lock first (it says
"running"), then the execution's beginning, then the command; at the end the bytes are synced
before the graph names them, and the end is folded in the same transaction as the rest.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew import db
from clew.errors import CannotExecute, ClewError, NoSuchCommand, RecordingFailed
from clew.folder import Folder
from clew.prov.events import AnyEvent, Content, Ended, Gap, Started, Version
from clew.prov.graph import Graph
from clew.prov.questions.executions import execution as execution_of
from clew.run import joining, locks, recovering, signals, streams
from clew.run.following import Follower
from clew.run.interest import Interest
from clew.settings import Settings, machine_id
from clew.store import Store
from clew.witness import environment, native
from clew.witness.contents import Contents
from clew.witness.packages import Packages
from clew.witness.records import AnyRecord, Exec
from clew.witness.secrets import Redactor
from clew.witness.story import Scene, Story
from clew.witness.syscalls import hear
from clew.witness.telling import Teller


@dataclass(frozen=True)
class Outcome:
    """How it went."""

    execution: dict[str, Any]
    """The execution, in the shape of `--json`."""
    status: int
    """What to exit with: the command's own status, or 128+n when signal n ended it."""
    joined: str | None = None
    """The execution around this one that recorded it, where there is one."""
    warning: ClewError | None = None
    """Why the record is not whole, though the command ran to its end."""


def execute(
    folder: Folder,
    settings: Settings,
    command: Sequence[str],
    *,
    name: str | None = None,
    content: bool = True,
    exclude: Sequence[str] = (),
) -> Outcome:
    """Run `command` as if alone; record what it read, wrote and looked for."""
    outer = native.outer_execution()
    if outer is not None:
        return joining.join(folder, settings, command, outer)
    native.require()
    return _Recording(folder, settings, tuple(command), name, content, tuple(exclude)).run()


class _Recording:
    """The steps of one execution, and what they share."""

    def __init__(
        self,
        folder: Folder,
        settings: Settings,
        command: tuple[str, ...],
        name: str | None,
        content: bool,
        exclude: tuple[str, ...],
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._command = command
        self._name = name
        self._content = content
        self._exclude = (*folder.exclude, *exclude)
        self._uid = secrets.token_hex(16)
        self._environ = dict(os.environ)
        self._redactor = Redactor(self._environ, settings.redact)
        self._machine = machine_id(settings)
        self._cwd = _working_folder()

    def run(self) -> Outcome:
        try:
            recovering.recover(self._folder, self._settings)
            self._lock = locks.hold(self._folder, self._uid)
        except OSError as error:
            raise RecordingFailed(
                f"cannot record in {self._folder.path}: {error.strerror}",
                hint="check the permissions and the free space of that folder",
            ) from error
        self._spool = self._folder.spool / self._uid
        try:
            return self._recorded()
        finally:
            shutil.rmtree(self._spool, ignore_errors=True)
            os.close(self._lock)

    def _recorded(self) -> Outcome:
        connection = db.connect(self._folder.graph, address=self._settings.graph)
        store = Store(self._folder.store, lease=self._uid)
        try:
            graph = Graph(connection, self._folder.uid)
            contents = Contents(store, spool=self._spool, keep=self._content, exclude=self._exclude)
            graph.begin(self._uid, name=self._name)
            started = self._started()
            recovering.note(self._spool, started)
            graph.fold([started])
            trace, kept, status = self._watch(contents)
            if not any(isinstance(record, Exec) for record in trace):
                graph.remove(self._uid)
                raise _unrunnable(self._command[0], status)
            warning = self._fold(graph, store, contents, trace, kept, status)
            found = execution_of(graph, self._uid, alive=lambda _: False)
            return Outcome(execution=found, status=status, warning=warning)
        finally:
            store.close()
            connection.close()

    # -- the beginning

    def _started(self) -> Started:
        facets = environment.facets(self._cwd, self._environ, self._redactor, machine=self._machine)
        self._boot = str(facets.get("boot", ""))[:8]
        self._variables: dict[str, str] = facets.pop("variables", {})
        git = environment.git(self._cwd, self._environ)
        return Started(
            execution=self._uid,
            n=1,
            at=time.time_ns(),
            activity=self._uid,
            kind="execution",
            agent=environment.user_name(os.getuid()),
            command=tuple(self._redactor.text(word) for word in self._command),
            cwd=os.fsencode(self._cwd).decode(errors="replace"),
            name=self._name,
            environment=dict(self._variables),
            facets={**facets, "git": git},
        )

    # -- the middle

    def _watch(self, contents: Contents) -> tuple[list[AnyRecord], streams.Streams, int]:
        interest = Interest()
        kept = streams.prepare(
            self._spool,
            redactor=self._redactor,
            limit=self._folder.stream_limit,
            interest=interest,
        )
        self._streams = kept.names
        said, notify = os.pipe()
        trace = self._spool / "trace"
        follower = Follower(trace, said, contents, interest)
        words = native.tracer_command(
            self._command,
            trace=trace,
            spool=self._spool if self._content else None,
            notify=notify,
            exclude=self._exclude,
            session=kept.terminal is not None and kept.terminal.both_ways,
        )
        stdin, stdout, stderr = kept.descriptors
        with signals.forwarded(lambda: follower.root):
            tracer = subprocess.Popen(
                words,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(notify,),
                env=self._environ,
            )
            os.close(notify)
            kept.started()
            follower.start()
            status = tracer.wait()
            kept.finish()
        records = follower.finish()
        if status < 0:
            raise RecordingFailed(
                f"the tracer was ended by signal {-status}, and the command with it",
                hint="clew list shows the execution as broken",
            )
        if status == 125 and not records:
            raise RecordingFailed("the command could not be traced", hint="is ptrace allowed here?")
        return records, kept, status

    # -- the end

    def _fold(
        self,
        graph: Graph,
        store: Store,
        contents: Contents,
        trace: list[AnyRecord],
        kept: streams.Streams,
        status: int,
    ) -> ClewError | None:
        scene = Scene(
            execution=self._uid,
            machine=self._machine,
            boot=self._boot,
            variables=self._variables,
            redactor=self._redactor,
            ignore=(os.fsencode(self._folder.path) + b"/",),
            streams=self._streams,
        )
        story = hear(scene, trace, contents)
        packages = Packages(self._folder.cache)
        owners = packages.owners(story.found())
        teller = Teller(scene, story, contents, owners)
        events = [*teller.events(), *self._stream_events(store, kept)]
        warning = contents.failure
        try:
            store.flush()
        except ClewError as error:
            warning = warning or error
        if warning is not None:
            events = [*_unstored(events), self._failure(warning)]
        events.append(self._ended(story, events, store, teller.bytes, packages, status))
        graph.fold(events)
        return warning

    def _stream_events(self, store: Store, kept: streams.Streams) -> list[AnyEvent]:
        events: list[AnyEvent] = []
        for number, (name, keeper) in enumerate(kept.kept.items()):
            if not keeper.size:
                continue
            stored = False
            if self._content and keeper.whole:
                try:
                    store.put_file(os.fsencode(keeper.path))
                    stored = True
                except ClewError:
                    stored = False
            events.append(
                Content(
                    execution=self._uid,
                    n=3 + number,
                    at=time.time_ns(),
                    version=Version(f"stream://{self._uid}/{name}", self._uid, 1),
                    digest=keeper.digest,
                    size=keeper.size,
                    mode=0o100600,
                    mtime=time.time_ns(),
                    stored=stored,
                )
            )
        return events

    def _failure(self, error: ClewError) -> Gap:
        return Gap(
            execution=self._uid,
            n=6,
            at=time.time_ns(),
            activity=self._uid,
            what="content",
            why=f"nothing was stored: {error.message}",
        )

    def _ended(
        self,
        story: Story,
        events: list[AnyEvent],
        store: Store,
        size: int,
        packages: Packages,
        status: int,
    ) -> Ended:
        root = next(iter(story.processes.values())).exit
        inputs, outputs = story.totals()
        return Ended(
            execution=self._uid,
            n=2,
            at=time.time_ns(),
            activity=self._uid,
            status=status if not (root and root.signal) else None,
            signal=root.signal or None if root else None,
            facets={
                "packages": packages.facet(),
                "processes": len(story.processes),
                "inputs": inputs,
                "outputs": outputs,
                "bytes": size,
                "new_bytes": store.added,
            },
        )


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise RecordingFailed(
            "the working folder no longer exists", hint="cd to a folder that does"
        ) from error


def _unrunnable(program: str, status: int) -> ClewError:
    if status == 127:
        return NoSuchCommand(f"no such command: {program}", hint=f"is {program} on the PATH?")
    if status == 126:
        return CannotExecute(f"cannot execute {program}", hint=f"chmod +x {program}")
    return RecordingFailed(f"{program} could not be started", hint="see the message above")


def _unstored(events: list[AnyEvent]) -> list[AnyEvent]:
    """After a failure nothing is claimed to be stored; digests are still facts."""
    return [_without_bytes(event) if isinstance(event, Content) else event for event in events]


def _without_bytes(event: Content) -> Content:
    return Content(
        execution=event.execution,
        n=event.n,
        at=event.at,
        version=event.version,
        digest=event.digest,
        size=event.size,
        mode=event.mode,
        mtime=event.mtime,
        stored=False,
        package=event.package,
    )
