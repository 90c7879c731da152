"""A witnessed command that lives on, and forks a child for each piece of work that it is sent.

The command is an execution of its own, and so is every piece (see `chronicles`). A piece is closed
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
        stage: LocalHost,
        name: str,
    ) -> None:
        """`name`: what to call it in lineage."""
        self.uid = os.urandom(16).hex()
        self.count = 0
        """How many pieces it was sent."""
        self.untold = 0
        """How many of them are not told yet."""
        self._folder = folder
        self._settings = settings
        self._command = tuple(command)
        self._stage = stage
        self._name = name
        self._redactor = Redactor(stage.environ, settings.redact, key=folder.key)
        self._branches = TraceSplitter()
        self._pieces: dict[int, ForkedTask] = {}
        self._early: dict[int, TraceBranch] = {}  # seen before the command said whose they are
        self._lock = threading.Lock()  # of the pieces
        self._chronicle: SessionEvents
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
            folder, stage = self._folder, self._stage
            withheld = (*folder.exclude, *folder.credential_files(stage.environ, stage.cwd))
            self._contents = ContentCapture(
                self._store, spool=self._spool, keep=True, exclude=withheld
            )
            self._intake = ContentIngest(self._contents)
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
            self._tracer = self._stage.start(
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
        self._voices = OutputReader(self._redactor, self._folder.stream_limit)
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._follower.start()
        self._begin_chronicle(self._contents)
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

    def _begin_chronicle(self, contents: ContentCapture) -> None:
        """What surrounds the command is looked at, and what tells of it loaded, while it starts."""
        from clew.run.session.session_events import SessionEvents

        beginning = execution_events.build_start(
            self.uid, self._stage, self._redactor, self._command
        )
        beginning.event.facets["streams"] = _STREAMS
        self._chronicle = SessionEvents(
            self._folder,
            self._settings,
            self._stage,
            self._redactor,
            beginning,
            contents,
            self._store,
            self._branches,
            self._name,
        )

    def stale(self) -> str | None:
        """What of all that the command read is no longer as it was; None: nothing."""
        standing = self._chronicle.standing
        return standing.changed() if standing else None

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
            self._voices.close()
        self._trace.close()

    def discard(self) -> None:
        """All is told: nothing is left of it but the record."""
        with contextlib.suppress(ClewError):
            self._store.close()
        shutil.rmtree(self._spool, ignore_errors=True)
        os.close(self._held)

    # -- a piece of work

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
        self.untold += 1
        voice = self._voices.open(self._spool / f"piece-{self.count}")
        heard(uid := os.urandom(16).hex(), voice.keeper.path)
        began = time.time_ns()
        socket.send_fds(self._socket, [message], [voice.descriptor])
        voice.given()
        answer = self._socket.recv(32)
        if not answer.isdigit():
            voice.finish()
            raise RecordingFailed(
                f"no process could be started: {answer.decode() or 'the worker has ended'}",
                hint="is there memory, and room for another process?",
            )
        piece = ForkedTask(uid, tuple(command), int(answer), voice, ended, began, name)
        with self._lock:
            if self.ended:
                piece.lost = True
            else:
                self._pieces[piece.pid] = piece
                branch = self._early.pop(piece.pid, None)
                if branch is not None:
                    piece.branch = branch
        if piece.lost:
            self._finish(piece)
        elif piece.branch is not None:
            self._look(piece)
        return piece

    def look(self) -> None:
        """Give up pieces whose processes are gone and whose ends will not be told: there was no
        room for the trace. To be called now and then."""
        now, silent = time.monotonic(), self._silent
        with self._lock:
            for piece in self._pieces.values():
                if piece.gone is None and not os.path.exists(f"/proc/{piece.pid}"):
                    piece.gone = now
            lost = [
                piece
                for piece in self._pieces.values()
                if silent is not None
                and piece.gone is not None
                and now - max(silent, piece.gone) > _LOST_AFTER
            ]
            for piece in lost:
                del self._pieces[piece.pid]
        for piece in lost:
            piece.lost = True
            self._finish(piece)

    # -- following

    def _follow(self) -> None:
        while True:
            self._silent = time.monotonic()
            word = os.read(self._notify, 4096)
            self._silent = None
            new = self._trace.read()
            self._intake.add(new)
            self._route(self._branches.take(new))
            self._intake.go_on()
            if self._branches.exit is not None:
                self._left_alone()
            if not word:
                break
        os.close(self._notify)
        with self._lock:
            self.ended = True
            lost = list(self._pieces.values())
            self._pieces.clear()
        for piece in lost:
            piece.lost = True
            self._finish(piece)

    def _left_alone(self) -> None:
        """The command has ended: so does all that it was asked for."""
        with self._lock:
            self.ended = True
            left: list[ForkedTask | TraceBranch] = [*self._pieces.values(), *self._early.values()]
        for one in left:
            one.stop(signal.SIGKILL)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # somebody may be waiting there

    def _route(self, branches: list[TraceBranch]) -> None:
        for branch in branches:
            with self._lock:
                piece = self._pieces.get(branch.spawn.pid)
                if piece is None:
                    self._early[branch.spawn.pid] = branch
                    continue
                piece.branch = branch
            self._look(piece)

    def _look(self, piece: ForkedTask) -> None:
        """Is it over? What outlives its first process is ended."""
        branch = piece.branch
        assert branch is not None
        if branch.exit is not None and branch.living:
            piece.stop(signal.SIGKILL)
        if branch.over:
            with self._lock:
                known = self._pieces.pop(piece.pid, None)
            if known is not None:
                self._finish(piece)

    def _finish(self, piece: ForkedTask) -> None:
        ended, piece.ended = (
            piece.ended,
            _no_callback,
        )  # who knows of whom: else both stay in memory
        ended(piece)

    # -- telling

    def events(self, piece: ForkedTask) -> list[AnyEvent]:
        """What there is to fold of a piece that is over, and of the command itself before the
        first; what it names is put into the store, which the caller flushes."""
        assert piece.branch is not None
        piece.voice.finish()
        with self._intake.resting():
            told = [] if self._told else self._chronicle.of_command(self._kept.names)
            self._told = True
            told += self._chronicle.of_piece(piece, piece.branch, self._intake.failure)
        self._branches.forget(piece.branch)
        self.untold -= 1
        piece.voice.keeper.path.unlink(missing_ok=True)
        return told

    def flush(self) -> None:
        self._store.flush()

    def last_events(self) -> list[AnyEvent]:
        """The end of the command itself, once it has ended."""
        if not self._told:
            return []
        return self._chronicle.of_the_end(self._kept)
