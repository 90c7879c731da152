"""What a dead recorder left is told once, by whoever comes first, with its own settings."""

import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from clew import db
from clew import project_directory as directories
from clew import settings as environment
from clew.project_directory import ProjectDirectory
from clew.prov.events import AnyEvent, Ended, Gap, Started
from clew.prov.graph import Graph
from clew.prov.queries.executions import list_executions
from clew.run import recovery
from clew.run.recovery import RecoveryNote
from clew.run.spool_directories import SpoolDirectory


@pytest.fixture
def directory(tmp_path: Path) -> ProjectDirectory:
    return directories.init(tmp_path, environment.load())


def dead(directory: ProjectDirectory, uid: str, *, events: list[AnyEvent] | None = None) -> Path:
    """An execution whose recorder died: with its events, or with nothing but a note."""
    spool = SpoolDirectory(directory, uid)
    spool.needed = True
    place = spool.path
    started = Started(
        execution=uid, n=1, at=1, activity=uid, kind="execution", command=("true",), cwd="/"
    )
    words = RecoveryNote(
        started=started, store_content=True, exclude=(), redact=(), streams={}, stream_limit=1 << 20
    )
    recovery.write_note(place, words)
    if events is not None:
        recovery.write_events(place, events)
    spool.close()
    return place


def states(directory: ProjectDirectory) -> list[tuple[str, str]]:
    with db.connect(directory.graph) as connection:
        found = list_executions(Graph(connection, directory.uid), alive=lambda _: False)
        return [(execution.uid, execution.state) for execution in found]


def ended(uid: str) -> list[AnyEvent]:
    return [Ended(execution=uid, n=2, at=5, activity=uid, status=0)]


def test_without_an_end_it_is_broken(directory: ProjectDirectory) -> None:
    place = dead(directory, "a" * 32)
    assert recovery.recover(directory, environment.load()) == []
    assert states(directory) == [("a" * 32, "broken")]
    assert not place.exists()


def test_events_that_were_kept_are_all_there_is(directory: ProjectDirectory) -> None:
    place = dead(directory, "a" * 32, events=ended("a" * 32))
    assert recovery.recover(directory, environment.load()) == []
    assert states(directory) == [("a" * 32, "done")]
    assert not place.exists()


def test_a_complete_record_gets_no_gap(directory: ProjectDirectory) -> None:
    """The recorder was killed after it had written everything."""
    uid = "a" * 32
    place = dead(directory, uid)
    note = msgspec.json.decode((place / "note").read_bytes(), type=RecoveryNote)
    with db.connect(directory.graph) as connection:
        graph = Graph(connection, directory.uid)
        graph.fold([note.started, *ended(uid)])
        assert recovery.recover(directory, environment.load()) == []
        assert graph.connection.rows("SELECT what FROM gap") == []
    assert states(directory) == [(uid, "done")]
    assert not place.exists()


def test_the_living_are_left_alone(directory: ProjectDirectory) -> None:
    spool = SpoolDirectory(directory, "b" * 32)
    assert recovery.recover(directory, environment.load()) == []
    assert (directory.spool / ("b" * 32)).exists()
    spool.close()


def test_before_anything_began_nothing_is_told(directory: ProjectDirectory) -> None:
    spool = SpoolDirectory(directory, "c" * 32)
    spool.needed = True
    spool.close()
    (directory.spool / f".{'d' * 32}").mkdir()  # killed while it made its directory
    assert recovery.recover(directory, environment.load()) == []
    assert states(directory) == []
    assert list(directory.spool.iterdir()) == []


def test_many_who_come_at_once_tell_each_once(directory: ProjectDirectory) -> None:
    for number in range(5):
        uid = f"{number}" * 32
        gap = Gap(execution=uid, n=7, at=3, activity=uid, what="x", why="y")
        dead(directory, uid, events=[*ended(uid), gap])
    unsettled = []

    def come() -> None:
        unsettled.extend(recovery.recover(directory, environment.load()))

    threads = [threading.Thread(target=come) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recovery.recover(directory, environment.load())
    assert unsettled == []
    assert [state for _, state in states(directory)] == ["done"] * 5
    with db.connect(directory.graph) as connection:
        assert connection.rows("SELECT count(*) FROM gap") == [(5,)]
    assert list(directory.spool.iterdir()) == []


def test_one_that_cannot_be_told_is_named_and_kept(directory: ProjectDirectory) -> None:
    place = dead(directory, "a" * 32)
    (place / "note").write_bytes(b"{}")
    dead(directory, "b" * 32, events=ended("b" * 32))
    (unsettled,) = recovery.recover(directory, environment.load())
    assert unsettled.uid == "a" * 32
    assert unsettled.why
    assert states(directory) == [("b" * 32, "done")]
    with recovery.discard_after(directory, "a" * 32):
        assert place.exists()
    assert not place.exists()
    assert recovery.recover(directory, environment.load()) == []


def test_no_spool_no_leavings(directory: ProjectDirectory) -> None:
    directory.spool.rmdir()
    assert recovery.recover(directory, environment.load()) == []


DIES = """
import os, pathlib, sys
from clew.store import Store
Store(pathlib.Path(sys.argv[1]), lease=sys.argv[2]).put_bytes(b"held")
os._exit(1)
"""


def test_a_dead_one_that_is_discarded_holds_nothing_any_more(directory: ProjectDirectory) -> None:
    place = dead(directory, "a" * 32)
    subprocess.run([sys.executable, "-c", DIES, directory.store, "a" * 32], check=False)
    assert len(list((directory.store / "leases").iterdir())) == 1
    with recovery.discard_after(directory, "a" * 32):
        pass
    assert not place.exists()
    assert list((directory.store / "leases").iterdir()) == []
