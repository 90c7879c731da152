"""What a killed recorder left behind: its trace is told as far as it goes.

The execution stays without an end, and so is shown as broken; what it was seen to do until then
is in the graph, and files that still are in the state they were seen in are stored. A recorder
that lived but could not write the graph left its events: then nothing is missing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from clew import db
from clew.errors import ClewError
from clew.folder import Folder, own
from clew.prov.events import AnyEvent, Content, Started, Version, from_batch, to_batch
from clew.prov.graph import Graph
from clew.redaction import Redactor
from clew.run import locks
from clew.settings import Settings, machine_id
from clew.store import Store
from clew.witness.contents import Contents
from clew.witness.packages import Packages
from clew.witness.records import AnyRecord, Trace, Variables, ordered
from clew.witness.story import Scene
from clew.witness.syscalls import hear
from clew.witness.telling import Teller

_NOTE = "note"
_EVENTS = "events"


class Note(msgspec.Struct, frozen=True):
    """What is needed, beside the trace, to tell the story without its recorder."""

    started: Started
    keep: bool
    exclude: tuple[str, ...]
    redact: tuple[str, ...]
    streams: dict[str, str]
    """As the scene has them; names that are no text do not occur."""
    stream_limit: int
    whole_or_none: bool = False
    """What never began is forgotten, and so is a repeat that was killed: what it saw was in a
    sandbox that is gone."""


class Unsettled(msgspec.Struct, frozen=True):
    """A dead execution whose leavings could not be told."""

    uid: str
    why: str


class _NoGraph(Exception):
    """There is nowhere to tell it to."""


def note(spool: Path, words: Note) -> None:
    _write(spool / _NOTE, msgspec.json.encode(words))


def keep_events(spool: Path, events: list[AnyEvent]) -> None:
    """Leave what is to be folded: whoever comes next folds it, if we do not get that far."""
    _write(spool / _EVENTS, to_batch(events))


def _write(path: Path, data: bytes) -> None:
    """Whole, or not there; for our own user only."""
    draft = path.with_suffix(".draft")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    draft.rename(path)


def recover(folder: Folder, settings: Settings) -> list[Unsettled]:
    """Settle every execution whose recorder is gone; two who try at once do it once.

    What cannot be settled now stays for the next time: it must not stand in the way of new work.
    """
    unsettled: list[Unsettled] = []
    for place in _places(folder):
        lock = locks.claim(place)
        if lock is None:
            continue
        try:
            if not place.name.startswith(locks.DRAFT):
                _settle(folder, settings, place)
            locks.discard(place)
        except _NoGraph as error:
            return [*unsettled, Unsettled(place.name, str(error))]  # nor is there for the others
        except Exception as error:  # also a fault of our own: said, and left for a better Clew
            unsettled.append(Unsettled(place.name, f"{type(error).__name__}: {error}"))
        finally:
            os.close(lock)
    return unsettled


def _places(folder: Folder) -> list[Path]:
    try:
        return sorted(folder.spool.iterdir())
    except OSError:  # no spool, or not ours to look into
        return []


@contextlib.contextmanager
def discarding(folder: Folder, uid: str) -> Iterator[None]:
    """What a dead execution left goes, once the body is done; nobody settles it meanwhile."""
    place = folder.spool / uid
    lock = locks.claim(place, wait=True)
    try:
        yield
        shutil.rmtree(place, ignore_errors=True)
        if lock is not None:  # gc drops what a dead one held, too, if the store cannot now
            with contextlib.suppress(ClewError), Store(folder.store) as store:
                store.lapse(uid)
    finally:
        if lock is not None:
            os.close(lock)


def _settle(folder: Folder, settings: Settings, place: Path) -> None:
    try:
        words = msgspec.json.decode((place / _NOTE).read_bytes(), type=Note)
    except FileNotFoundError:
        return  # killed before anything began
    try:
        opened = db.connect(folder.graph, address=settings.graph)
    except ClewError as error:
        raise _NoGraph(error.message) from error
    with opened as connection, Store(folder.store, lease=words.started.execution) as store:
        try:
            events = from_batch((place / _EVENTS).read_bytes())
        except FileNotFoundError:
            if words.whole_or_none:
                Graph(connection, folder.uid).remove(words.started.execution)
                store.lapse(words.started.execution)
                return
            events = _tell(folder, settings, place, words, store)
        store.flush()
        Graph(connection, folder.uid).fold([words.started, *events])
        store.lapse(words.started.execution)


def _tell(
    folder: Folder, settings: Settings, place: Path, words: Note, store: Store
) -> list[AnyEvent]:
    reader = Trace(place / "trace")
    trace = ordered(reader.read())
    reader.close()
    started = words.started
    scene = Scene(
        execution=started.execution,
        machine=machine_id(settings),
        boot=str(started.facets.get("boot", ""))[:8],
        variables={name: value or "" for name, value in started.environment.items()},
        redactor=Redactor(_environ(trace), words.redact),
        ignore=own(folder, settings),
        streams={os.fsencode(name): stream for name, stream in words.streams.items()},
    )
    contents = Contents(
        store,
        spool=place,
        keep=words.keep,
        exclude=words.exclude,
        until=max((record.at for record in trace), default=0),
    )
    contents.follow(trace)
    story = hear(scene, trace, contents)
    owners = Packages(settings.owners).owners(story.found())
    told = list(Teller(scene, story, contents, owners).events())
    return [*told, *_streams(store, place, words)]


def _streams(store: Store, place: Path, words: Note) -> Iterator[AnyEvent]:
    """What it printed until then, where that was not more than is kept."""
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
            n=3 + number,
            at=found.st_mtime_ns,
            version=Version(f"stream://{uid}/{name}", uid, 1),
            digest=content.digest,
            size=content.size,
            mode=0o100600,
            mtime=found.st_mtime_ns,
            stored=words.keep,
        )


def _environ(trace: list[AnyRecord]) -> Mapping[str, str]:
    """The variables the command was started with: their secret values are masked here as ever."""
    first = next((record for record in trace if isinstance(record, Variables)), None)
    entries = (os.fsdecode(entry).partition("=") for entry in first.entries) if first else ()
    return {name: value for name, _, value in entries}
