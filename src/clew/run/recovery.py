"""Complete the records of executions whose recorder was killed.

The trace in the spool is folded into the graph as far as it goes, and files that are still in the
state they were seen in are stored. The execution has no end, so it is shown as broken, with a gap
that says why. A recorder that ended normally but could not write the graph left its events in the
spool; then nothing is missing.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from clew import db, log
from clew.atomic_file import write_atomically
from clew.documents.ids import Uid
from clew.errors import ClewError, Full, NoDatabase, NotFound
from clew.project_directory import ProjectDirectory, clew_paths, is_accepted
from clew.prov.event_numbers import FIRST_STREAM, LOST_CONTENT, LOST_TRACE
from clew.prov.events import AnyEvent, Content, Started, Version, from_batch, to_batch
from clew.prov.graph import Graph
from clew.prov.locators import file_locator, stream_locator
from clew.prov.queries.executions import get_execution
from clew.redaction import Redactor
from clew.run import execution_events, record_errors, spool_directories
from clew.settings import Settings, machine_id
from clew.store import Store
from clew.store.errors import from_os
from clew.tree_removal import remove_tree
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import AnyRecord, Trace, Variables, sort_records

_NOTE = "note"
_EVENTS = "events"


class RecoveryNote(msgspec.Struct, frozen=True):
    """The facts, besides the trace, from which recovery builds the events."""

    started: Started
    store_content: bool
    exclude: tuple[str, ...]
    redact: tuple[str, ...]
    streams: dict[str, str]
    """stdin, stdout or stderr by the name that the tracer sees: a pipe or a terminal."""
    stream_limit: int
    label: str | None = None
    """The name of the first process in lineage, where the command says little."""
    forget_incomplete: bool = False
    """Forget the execution instead of completing its record: its command never started, or it is
    a repeat, whose sandbox is gone."""


PATIENCE = 5.0
"""Seconds that a shared database may take for one statement while the user waits for a command:
longer than any fold takes, and what is not folded now is folded later."""


class UnrecoveredExecution(msgspec.Struct, frozen=True):
    """A killed execution whose record could not be completed."""

    uid: Uid
    why: str
    database_unreachable: bool = False
    """The only reason is that the database does not answer: a later recovery can complete it."""


class _NoGraph(Exception):
    """The graph cannot be opened."""


def write_note(spool: Path, note: RecoveryNote) -> None:
    write_atomically(spool / _NOTE, msgspec.json.encode(note))


def write_events(spool: Path, events: list[AnyEvent]) -> None:
    """Save the events so that recovery folds them if this process cannot."""
    write_atomically(spool / _EVENTS, to_batch(events))


def recover(directory: ProjectDirectory, settings: Settings) -> list[UnrecoveredExecution]:
    """Complete the record of every execution whose recorder is gone, and return those that failed.

    If two processes try at once, one does the work. A record that fails stays in the spool for the
    next recovery, so it never blocks new work. A spool that came with a repository is not read: it
    could name any file of this user as one that was read, to be stored.
    """
    unrecovered: list[UnrecoveredExecution] = []
    killed = spool_directories.list_killed(directory)
    if killed and not is_accepted(directory, settings):
        why = "you did not make the project; clew init --trust accepts it"
        return [UnrecoveredExecution(Uid(spool.name), why) for spool in killed]
    for spool in spool_directories.list_spools(directory):
        lock = None
        try:
            lock = spool_directories.claim_killed(spool)
            if lock is None:
                continue
            if not spool.name.startswith(spool_directories.DRAFT):
                done = _complete_record(directory, settings, spool)
                log.write(directory, "info", f"{done} {spool.name}")
            remove_tree(spool)
        except (_NoGraph, NoDatabase) as error:
            log.write(directory, "warning", f"cannot recover {spool.name}: {error}")
            unreachable = isinstance(error, NoDatabase) or isinstance(error.__cause__, NoDatabase)
            return [
                *unrecovered,
                UnrecoveredExecution(Uid(spool.name), str(error), unreachable),
            ]  # the others would fail as well
        except Exception as error:  # a bug in Clew must not stop new work either
            log.write_error(directory, error, doing=f"cannot recover {spool.name}")
            unrecovered.append(UnrecoveredExecution(Uid(spool.name), _reason(error)))
        finally:
            if lock is not None:
                os.close(lock)
    return unrecovered


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, ClewError) else f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def discard_after(directory: ProjectDirectory, uid: Uid) -> Iterator[None]:
    """Remove the spool of a killed execution after the body; meanwhile it is not recovered."""
    spool = directory.spool / uid
    try:
        lock = spool_directories.claim_killed(spool, wait=True)
    except OSError as error:
        raise from_os(error, doing=f"write to {spool}") from error
    try:
        yield
        shutil.rmtree(spool, ignore_errors=True)
        if lock is not None:  # if this fails now, gc drops the lease
            with contextlib.suppress(ClewError), Store(directory.store) as store:
                store.drop_leases(uid)
    finally:
        if lock is not None:
            os.close(lock)


def _complete_record(directory: ProjectDirectory, settings: Settings, spool: Path) -> str:
    """Fold what the spool holds. Returns what was done, for the log."""
    try:
        note = msgspec.json.decode((spool / _NOTE).read_bytes(), type=RecoveryNote)
    except FileNotFoundError:
        return "discarded the remains of"  # killed before the command started
    try:
        opened = db.connect(directory.graph, address=settings.graph, patience=PATIENCE)
    except ClewError as error:
        raise _NoGraph(error.message) from error
    with opened as connection, Store(directory.store, lease=note.started.execution) as store:
        graph, uid = Graph(connection, directory.uid), note.started.execution
        done = "completed the record of"
        try:
            events = from_batch((spool / _EVENTS).read_bytes())
        except FileNotFoundError:
            if note.forget_incomplete:
                graph.withdraw(uid)
                store.drop_leases(uid)
                return "removed the unfinished execution"
            if _has_ended(graph, uid):
                store.drop_leases(uid)
                return "discarded the remains of"  # killed after it had written the record
            events = _build_events(directory, settings, spool, note, store)
            done = "recovered the killed execution"
        store.flush()
        graph.fold([note.started, *events])
        store.drop_leases(uid)
    return done


def _has_ended(graph: Graph, uid: Uid) -> bool:
    """Whether the graph has the end of the execution: the recorder writes it with all the rest."""
    try:
        return get_execution(graph, uid, alive=lambda _: False).ended is not None
    except NotFound:  # the database was away when it began
        return False


def _build_events(
    directory: ProjectDirectory, settings: Settings, spool: Path, note: RecoveryNote, store: Store
) -> list[AnyEvent]:
    """Build events from the trace and the captured streams, with a gap for what is missing."""
    reader = Trace(spool / "trace")
    trace = sort_records(reader.read())
    reader.close()
    started = note.started
    uid = started.execution
    contents = ContentCapture(
        store,
        saved=spool,
        store_content=note.store_content,
        exclude=note.exclude,
        until=max((record.at for record in trace), default=0),
    )
    contents.follow(trace)
    # Late: every execution starts with a recovery, and rarely is there something to recover.
    from clew.packages.owners import Packages
    from clew.witness.syscalls.trace_conversion import TraceConverter

    converter = TraceConverter(
        locate=partial(file_locator, machine_id(settings)),
        boot=str(started.facets.get("boot", ""))[:8],
        variables={name: value or "" for name, value in started.environment.items()},
        sealed=started.facets.get("sealed", {}),
        redactor=Redactor(_environ(trace), note.redact, key=directory.key),
        ignore=clew_paths(directory, settings),
        contents=contents,
        owners=Packages(settings.owners).owners,
    )
    streams = {os.fsencode(name): stream for name, stream in note.streams.items()}
    built = converter.build(uid, trace, streams)
    events = [
        *execution_events.label_process(built.events, built.first, note.label),
        *_streams(store, spool, note),
    ]
    failure = contents.failure
    if isinstance(failure, Full):
        raise failure  # everything can be stored once there is space
    if failure is not None:
        lost = execution_events.build_gap(
            uid, LOST_CONTENT, "content", f"some content could not be stored: {failure.message}"
        )
        events = [*record_errors.correct_stored(events, store), lost]
    why = "the recorder was killed before the end: what happened afterwards is not recorded"
    if reader.damaged:
        why += f"; the trace is damaged after {len(trace)} records"
    return [*events, execution_events.build_gap(uid, LOST_TRACE, "trace", why)]


def _streams(store: Store, spool: Path, note: RecoveryNote) -> Iterator[AnyEvent]:
    """The output before the kill, unless it is larger than the limit."""
    for number, name in enumerate(sorted(set(note.streams.values()))):
        try:
            found = (spool / name).stat()
        except FileNotFoundError:
            continue
        if not 0 < found.st_size < note.stream_limit:
            continue
        content = store.put_file(os.fsencode(spool / name), keep=note.store_content)
        uid = note.started.execution
        yield Content(
            execution=uid,
            n=FIRST_STREAM + number,
            at=found.st_mtime_ns,
            version=Version(stream_locator(uid, name), uid, 1),
            digest=content.digest,
            size=content.size,
            mode=0o100600,
            mtime=found.st_mtime_ns,
            stored=note.store_content,
        )


def _environ(trace: list[AnyRecord]) -> Mapping[str, str]:
    """The command's environment variables, so that their secret values are masked."""
    first = next((record for record in trace if isinstance(record, Variables)), None)
    entries = (os.fsdecode(entry).partition("=") for entry in first.entries) if first else ()
    return {name: value for name, _, value in entries}
