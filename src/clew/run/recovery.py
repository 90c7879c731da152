"""Complete the records of executions whose recorder was killed.

The trace in the spool is folded into the graph as far as it goes, and files that are still in the
state they were seen in are stored. The execution has no end, so it is shown as broken, with a gap
that says why. A recorder that ended normally but could not write the graph left its events in the
spool; then nothing is missing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from clew import db, log
from clew.errors import ClewError, Full, NoDatabase
from clew.packages.owners import Packages
from clew.project_directory import Folder, own
from clew.prov.event_kinds import FIRST_STREAM, LOST_CONTENT, LOST_TRACE
from clew.prov.events import AnyEvent, Content, Started, Version, from_batch, to_batch
from clew.prov.graph import Graph
from clew.redaction import Redactor
from clew.run import execution_events, execution_locks, record_errors
from clew.settings import Settings, machine_id
from clew.store import Store
from clew.store.errors import from_os
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_conversion import TraceConverter
from clew.witness.syscalls.trace_format import AnyRecord, Trace, Variables, ordered

_NOTE = "note"
_EVENTS = "events"


class RecoveryNote(msgspec.Struct, frozen=True):
    """What is needed, besides the trace, to build the events without the recorder."""

    started: Started
    keep: bool
    exclude: tuple[str, ...]
    redact: tuple[str, ...]
    streams: dict[str, str]
    """As the scene has them; names that are no text do not occur."""
    stream_limit: int
    label: str | None = None
    """The name of its first process, where the command says little."""
    whole_or_none: bool = False
    """What never began is forgotten, and so is a repeat that was killed: what it saw was in a
    sandbox that is gone."""


PATIENCE = 5.0
"""Seconds that a shared database may take for one statement while the user waits for a command:
longer than any fold takes, and what is not folded now is folded later."""


class UnrecoveredExecution(msgspec.Struct, frozen=True):
    """A killed execution whose record could not be completed."""

    uid: str
    why: str
    away: bool = False
    """Only the database is away: it can be completed when that answers."""


class _NoGraph(Exception):
    """The graph cannot be opened."""


def write_note(spool: Path, words: RecoveryNote) -> None:
    _write(spool / _NOTE, msgspec.json.encode(words))


def write_events(spool: Path, events: list[AnyEvent]) -> None:
    """Keep what is to be folded, so that the next recovery can fold it if this process cannot."""
    _write(spool / _EVENTS, to_batch(events))


def _write(path: Path, data: bytes) -> None:
    """Whole, or not there; for our own user only."""
    draft = path.with_suffix(".draft")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    draft.rename(path)


def recover(folder: Folder, settings: Settings) -> list[UnrecoveredExecution]:
    """Complete the record of every execution whose recorder is gone, and return those that failed.

    Of two processes that try at once one does the work. What fails stays in the spool for the next
    time, so it never stands in the way of new work.
    """
    unsettled: list[UnrecoveredExecution] = []
    for place in execution_locks.list_spools(folder):
        lock = None
        try:
            lock = execution_locks.claim_killed(place)
            if lock is None:
                continue
            if not place.name.startswith(execution_locks.DRAFT):
                done = _complete_record(folder, settings, place)
                log.write(folder, "info", f"{done} {place.name}")
            execution_locks.remove_tree(place)
        except (_NoGraph, NoDatabase) as error:
            log.write(folder, "warning", f"cannot recover {place.name}: {error}")
            away = isinstance(error, NoDatabase) or isinstance(error.__cause__, NoDatabase)
            return [
                *unsettled,
                UnrecoveredExecution(place.name, str(error), away),
            ]  # so would the others
        except Exception as error:  # a bug of ours must not stop new work either
            log.write_error(folder, error, doing=f"cannot recover {place.name}")
            unsettled.append(UnrecoveredExecution(place.name, _reason(error)))
        finally:
            if lock is not None:
                os.close(lock)
    return unsettled


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, ClewError) else f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def discard_after(folder: Folder, uid: str) -> Iterator[None]:
    """Remove what a killed execution left, once the body is done; it is not recovered meanwhile."""
    place = folder.spool / uid
    try:
        lock = execution_locks.claim_killed(place, wait=True)
    except OSError as error:
        raise from_os(error, doing=f"write to {place}") from error
    try:
        yield
        shutil.rmtree(place, ignore_errors=True)
        if lock is not None:  # gc drops what a dead one held, too, if the store cannot now
            with contextlib.suppress(ClewError), Store(folder.store) as store:
                store.lapse(uid)
    finally:
        if lock is not None:
            os.close(lock)


def _complete_record(folder: Folder, settings: Settings, place: Path) -> str:
    """What was done, for the log."""
    try:
        words = msgspec.json.decode((place / _NOTE).read_bytes(), type=RecoveryNote)
    except FileNotFoundError:
        return "discarded what is left of"  # killed before anything began
    try:
        opened = db.connect(folder.graph, address=settings.graph, patience=PATIENCE)
    except ClewError as error:
        raise _NoGraph(error.message) from error
    with opened as connection, Store(folder.store, lease=words.started.execution) as store:
        done = "completed the record of"
        try:
            events = from_batch((place / _EVENTS).read_bytes())
        except FileNotFoundError:
            if words.whole_or_none:
                Graph(connection, folder.uid).remove(words.started.execution)
                store.lapse(words.started.execution)
                return "forgot the unfinished execution"
            events = _build_events(folder, settings, place, words, store)
            done = "recovered the killed execution"
        store.flush()
        Graph(connection, folder.uid).fold([words.started, *events])
        store.lapse(words.started.execution)
    return done


def _build_events(
    folder: Folder, settings: Settings, place: Path, words: RecoveryNote, store: Store
) -> list[AnyEvent]:
    """What the trace and the streams hold, and a gap that says what is missing."""
    reader = Trace(place / "trace")
    trace = ordered(reader.read())
    reader.close()
    started = words.started
    uid = started.execution
    contents = ContentCapture(
        store,
        spool=place,
        keep=words.keep,
        exclude=words.exclude,
        until=max((record.at for record in trace), default=0),
    )
    contents.follow(trace)
    builder = TraceConverter(
        machine=machine_id(settings),
        boot=str(started.facets.get("boot", ""))[:8],
        variables={name: value or "" for name, value in started.environment.items()},
        sealed=started.facets.get("sealed", {}),
        redactor=Redactor(_environ(trace), words.redact, key=folder.key),
        ignore=own(folder, settings),
        contents=contents,
        owners=Packages(settings.owners).owners,
    )
    streams = {os.fsencode(name): stream for name, stream in words.streams.items()}
    built = builder.build(uid, trace, streams)
    events = [
        *execution_events.label_process(built.events, built.first, words.label),
        *_streams(store, place, words),
    ]
    failure = contents.failure
    if isinstance(failure, Full):
        raise failure  # all of it can be stored once there is room
    if failure is not None:
        lost = execution_events.build_gap(
            uid, LOST_CONTENT, "content", f"not all was stored: {failure.message}"
        )
        events = [*record_errors.correct_stored(events, store), lost]
    why = "the recorder was killed: what the command did afterwards is not recorded"
    if reader.damaged:
        why += f"; the trace is damaged after {len(trace)} records"
    return [*events, execution_events.build_gap(uid, LOST_TRACE, "trace", why)]


def _streams(store: Store, place: Path, words: RecoveryNote) -> Iterator[AnyEvent]:
    """What it printed before the kill, unless that is more than the limit."""
    for number, name in enumerate(sorted(set(words.streams.values()))):
        try:
            found = (place / name).stat()
        except FileNotFoundError:
            continue
        if not 0 < found.st_size < words.stream_limit:
            continue
        content = store.put_file(os.fsencode(place / name), keep=words.keep)
        uid = words.started.execution
        yield Content(
            execution=uid,
            n=FIRST_STREAM + number,
            at=found.st_mtime_ns,
            version=Version(f"stream://{uid}/{name}", uid, 1),
            digest=content.digest,
            size=content.size,
            mode=0o100600,
            mtime=found.st_mtime_ns,
            stored=words.keep,
        )


def _environ(trace: list[AnyRecord]) -> Mapping[str, str]:
    """The variables the command was started with: their secret values are masked."""
    first = next((record for record in trace if isinstance(record, Variables)), None)
    entries = (os.fsdecode(entry).partition("=") for entry in first.entries) if first else ()
    return {name: value for name, _, value in entries}
