"""What a killed recorder left behind: its trace is told as far as it goes.

The execution stays without an end, and so is shown as broken; what it was seen to do until then
is in the graph, and files that still are in the state they were read in are stored.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from clew import db
from clew.folder import Folder
from clew.prov.events import Started, from_lines, to_lines
from clew.prov.graph import Graph
from clew.settings import Settings, machine_id
from clew.store import Store
from clew.witness.contents import Contents
from clew.witness.packages import Packages
from clew.witness.records import AnyRecord, Trace, Variables
from clew.witness.secrets import Redactor
from clew.witness.story import Scene
from clew.witness.syscalls import hear
from clew.witness.telling import Teller

_NOTE = "started"


def note(spool: Path, started: Started) -> None:
    """Leave beside the trace what is needed to tell it without us."""
    (spool / _NOTE).write_bytes(b"".join(to_lines([started])))


def recover(folder: Folder, settings: Settings) -> None:
    """Tell every trace whose recorder is gone. Two that try at once do it once."""
    for left in sorted(folder.spool.iterdir()):
        lock = _claim(left)
        if lock is None:
            continue
        try:
            _tell(folder, settings, left)
            shutil.rmtree(left, ignore_errors=True)
        finally:
            os.close(lock)


def _claim(left: Path) -> int | None:
    try:
        lock = os.open(left / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _environ(trace: list[AnyRecord]) -> dict[str, str]:
    """The variables the command was started with: their secret values are masked here as ever."""
    first = next((record for record in trace if isinstance(record, Variables)), None)
    entries = (os.fsdecode(entry).partition("=") for entry in first.entries) if first else ()
    return {name: value for name, _, value in entries}


def _tell(folder: Folder, settings: Settings, left: Path) -> None:
    try:
        (started,) = from_lines((left / _NOTE).read_bytes().splitlines(keepends=True))
    except (OSError, ValueError):
        return  # killed before anything began
    assert isinstance(started, Started)
    reader = Trace(left / "trace")
    trace = sorted(reader.read(), key=lambda record: record.seq)
    reader.close()
    scene = Scene(
        execution=started.execution,
        machine=machine_id(settings),
        boot=str(started.facets.get("boot", ""))[:8],
        variables={name: value or "" for name, value in started.environment.items()},
        redactor=Redactor(_environ(trace), settings.redact),
        ignore=(os.fsencode(folder.path) + b"/",),
        streams={},
    )
    connection = db.connect(folder.graph, address=settings.graph)
    store = Store(folder.store, lease=started.execution)
    try:
        contents = Contents(store, spool=left, keep=True, exclude=folder.exclude)
        contents.follow(trace)
        story = hear(scene, trace, contents)
        owners = Packages(folder.cache).owners(story.found())
        events = list(Teller(scene, story, contents, owners).events())
        store.flush()
        Graph(connection, folder.uid).fold([started, *events])
    finally:
        store.close()
        connection.close()
