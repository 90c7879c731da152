"""A project that is not as it should be: its graph locked, damaged or from a later Clew, its store
or its configuration unreadable, what a killed execution left spoilt.

Before the command has started this is a clear error, and the command is not started. Once it has
started, it runs to its own end with its own status, and what is wrong is said on stderr.
"""

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.local.processes import (
    TrackedProject,
    assert_recording_refused,
    finish_paused,
    start_paused,
)
from tests.wait import wait_until


@pytest.fixture
def clew(tmp_path: Path) -> Iterator[TrackedProject]:
    clew = TrackedProject(tmp_path)
    clew.write("data", "some data\n")
    yield clew
    clew.stop()


@contextmanager
def locked(graph: Path) -> Iterator[None]:
    with closing(sqlite3.connect(graph, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


@pytest.mark.heavy  # half a minute: so long another writer is waited for
def test_a_graph_that_another_process_locked(clew: TrackedProject) -> None:
    clew("exec", "--", "true")
    with locked(clew.folder / ".clew" / "graph.db"):
        assert_recording_refused(clew, said="locked by another program")
    process = start_paused(clew, "exit 9")
    with locked(clew.folder / ".clew" / "graph.db"):
        said = finish_paused(process, status=9)
    assert "clew: warning: " in said
    assert "locked" in said
    clew("exec", "--", "true")
    assert list(clew.states().values()) == ["done", "failed", "done"]
    assert clew.leftovers() == []


def damage(path: Path) -> None:
    for beside in path.parent.glob(path.name + "-*"):
        beside.unlink()
    path.write_bytes(b"this is no database, though it is long enough to be one" * 100)


def make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as graph:
        graph.execute("PRAGMA user_version = 999")


def test_a_damaged_graph(clew: TrackedProject) -> None:
    clew("exec", "--", "true")
    damage(clew.folder / ".clew" / "graph.db")
    assert_recording_refused(clew, said="is damaged")
    for words in (["list"], ["show", "e1"], ["gc", "--yes"], ["fsck"], ["trace", "data"]):
        code, message, hint = clew.error(*words, status=3)
        assert (code, "graph.db" in message) == ("damaged", True)
        assert hint


def test_a_graph_of_a_newer_clew(clew: TrackedProject) -> None:
    clew("exec", "--", "true")
    make_newer(clew.folder / ".clew" / "graph.db")
    assert_recording_refused(clew, said="schema 999")
    code, _, hint = clew.error("list", status=1)
    assert (code, "upgrade" in hint) == ("failed", True)


@pytest.mark.parametrize("spoil", [damage, make_newer])
def test_a_graph_that_is_spoilt_meanwhile(clew: TrackedProject, spoil: object) -> None:
    graph = clew.folder / ".clew" / "graph.db"
    process = start_paused(clew, "cat data > late; exit 2")
    good = graph.read_bytes()
    assert callable(spoil)
    spoil(graph)
    said = finish_paused(process, status=2)
    assert "clew: warning: " in said
    assert "e1 ended with status 2" in said
    for beside in graph.parent.glob("graph.db-*"):
        beside.unlink()
    graph.write_bytes(good)
    clew("exec", "--", "true")
    found = clew.json("show", "e1")
    assert (found["state"], found["status"]) == ("failed", 2)
    assert clew("cat", "e1:late").stdout == "some data\n"
    assert clew.leftovers() == []
    clew.assert_intact()


def test_a_store_of_another_format(clew: TrackedProject) -> None:
    clew("exec", "--", "true")
    (clew.folder / ".clew" / "store" / "format").write_text("clew-store 99\n")
    assert_recording_refused(clew, said="another format")


def test_a_configuration_that_cannot_be_read(clew: TrackedProject) -> None:
    (clew.folder / ".clew" / "config.toml").write_text("uid = [")
    for status, words in ((1, ["list"]), (125, ["exec", "--", "true"])):
        ran = clew(*words, status=status)
        assert "config.toml cannot be read" in ran.stderr
        assert "hint: " in ran.stderr


def test_an_unreadable_spool_does_not_block_others(clew: TrackedProject) -> None:
    """What a killed execution left may be damaged, too."""
    process = start_paused(clew, "exit 0")
    spool = clew.folder / ".clew" / "spool"
    wait_until("a trace", lambda: any(path.stat().st_size for path in spool.glob("*/trace")))
    process.kill()
    process.communicate()
    clew.wait_until_ended()
    (left,) = spool.iterdir()
    (left / "note").write_bytes(b"{")
    clew("exec", "--", "true")
    assert clew.states() == {"e1": "broken", "e2": "done"}
    told = clew.json("fsck", status=3)
    assert told["ok"] is False
    assert left.name in [problem["where"] for problem in told["problems"]]
    code, _, hint = clew.error("gc", "--yes", status=1)
    assert (code, "clew rm" in hint) == ("busy", True)
    clew("rm", "e1", "--yes")
    clew.assert_intact()
    assert clew.leftovers() == []


def test_the_lock_of_the_spool_shows_what_runs(clew: TrackedProject) -> None:
    process = start_paused(clew, "exit 0")
    assert clew.states() == {"e1": "running"}
    (place,) = (clew.folder / ".clew" / "spool").iterdir()
    with open(place / "lock") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    finish_paused(process, status=0)
    assert clew.states() == {"e1": "done"}
