"""An execution's rows as events again: folded elsewhere they are the same record."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from tests.unit.prov.conftest import Ask
from tests.unit.prov.execution_builder import ExecutionBuilder, digest
from tests.unit.prov.test_fold import PROJECT, dump, folded, stories

from clew.db import Connection, connect
from clew.prov.events import AnyEvent, Looked
from clew.prov.export.note_transfer import export_notes, import_notes
from clew.prov.export.recorded_events import export_events, list_stored_digests
from clew.prov.graph import Graph
from clew.prov.queries.execution_record import load_record
from clew.prov.queries.executions import find_execution
from clew.prov.queries.notes import add_note, list_notes


def told_again(graph: Graph) -> list[AnyEvent]:
    uids = [row[0] for row in graph.connection.rows("SELECT uid FROM execution ORDER BY uid")]
    return [event for uid in uids for event in export_events(graph, find_execution(graph, uid))]


@given(stories())
def test_folding_what_the_rows_say_gives_the_same_rows(events: list[AnyEvent]) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        connect(Path(directory) / "g.db") as connection,
    ):
        graph = Graph(connection, PROJECT)
        graph.fold(events)
        again = told_again(graph)
        assert folded(again) == dump(connection)


@given(stories())
def test_exported_events_give_the_same_record_in_another_project(events: list[AnyEvent]) -> None:
    """What a project's uid is does not matter: its events are those of any other."""
    with (
        tempfile.TemporaryDirectory() as directory,
        connect(Path(directory) / "g.db") as connection,
    ):
        here, there = Graph(connection, "1" * 32), Graph(connection, "2" * 32)
        here.fold(events)
        for row in connection.rows("SELECT uid FROM execution WHERE project = ?", (here.project,)):
            first = export_events(here, find_execution(here, row[0]))
            there.import_events(first)
            assert export_events(there, find_execution(there, row[0])) == first


ALSO = (
    ("absent", "file://m1/w/x", "ENOENT"),
    ("absent", "file://m1/w/y", "ENOENT"),
    ("times", "file://m1/w/b", "100644 1 2"),
    ("absent", "file://m1/w/z", "ENOENT"),
)


def rich() -> ExecutionBuilder:
    builder = ExecutionBuilder(
        "a", name="n", environment={"A": "1", "Ü": ""}, facets={"kind": "repetition", "x": [1]}
    )
    process = builder.process("cat", "x", environment={"A": None})
    builder.read(process, b"/w/\xff", "A", package="pkg:deb/debian/x@1", source="https://x/y")
    builder.write(process, "/w/b", "B", finished=True)
    builder.look(process, "/w", "listing", digest("names"), *ALSO)
    builder.delete(process, "/w/b")
    builder.inform(process, builder.uid)
    builder.alias("/w/a", "/w/b")
    builder.gap(process, "x", "y", "/w/gap")
    builder.end(3, processes=1)
    return builder


def test_every_kind_of_event_comes_back_on_both_databases(connection: Connection) -> None:
    builder = rich()
    graph = Graph(connection, PROJECT)
    graph.fold(builder.events)
    again = export_events(graph, find_execution(graph, builder.uid))
    assert {type(event) for event in again} == {type(event) for event in builder.events}
    assert folded(again) == dump(connection) == folded(builder.events)
    assert list_stored_digests(again) == {digest("A"), digest("B"), digest("names")}
    assert [event.also for event in again if isinstance(event, Looked)] == [ALSO]
    looks = load_record(graph, "e1").looked[1:]
    assert tuple((look.kind, look.locator, look.answer) for look in looks) == ALSO


def test_what_only_has_a_digest_is_a_fact_without_bytes(graph: Graph) -> None:
    builder = ExecutionBuilder("a")
    version = builder.write(builder.process("x"), "/w/a")
    builder.content(version, "big", stored=False)
    graph.fold(builder.events)
    again = export_events(graph, find_execution(graph, builder.uid))
    assert list_stored_digests(again) == set()
    assert any(getattr(event, "digest", None) == digest("big") for event in again)


def test_a_parent_that_was_forgotten_is_left_out(graph: Graph) -> None:
    first = ExecutionBuilder("a").end()
    second = ExecutionBuilder("b", at=2000, parent=first.uid).end()
    graph.fold([*first.events, *second.events])
    assert export_events(graph, find_execution(graph, second.uid))[0].parent == first.uid  # type: ignore[union-attr]
    graph.remove(first.uid)
    assert export_events(graph, find_execution(graph, second.uid))[0].parent is None  # type: ignore[union-attr]


def test_notes_travel_and_come_back_as_one(graph: Graph, target: Ask) -> None:
    builder = ExecutionBuilder("a")
    process = builder.process("cat")
    builder.read(process, "/w/in", "A")
    builder.write(process, "/w/out", "B")
    graph.fold(builder.end().events)
    other = ExecutionBuilder("b", at=5000)
    other.read(other.process("x"), "/w/other", "C")
    graph.fold(other.end().events)
    for text, now in (("e1", {}), ("e1.p1", {}), ("e1:/w/out", {}), ("/w/in", {"in": "A"})):
        add_note(graph, target(text, **now), "said", f"of {text}", agent="ann")
    add_note(graph, target("e2"), "said", "elsewhere", agent="ann")
    told = export_notes(graph, find_execution(graph, builder.uid))
    assert [remark.value for remark in told] == ["of e1", "of e1.p1", "of e1:/w/out", "of /w/in"]

    there = Graph(graph.connection, "q" * 32)
    there.import_events(builder.events, also=lambda: import_notes(there, builder.uid, told))
    assert export_notes(there, find_execution(there, builder.uid)) == told
    assert graph.connection.atomically(lambda: import_notes(there, builder.uid, told)) == 0
    assert (
        graph.connection.atomically(lambda: import_notes(graph, builder.uid, told)) == 0
    )  # home again
    assert [found.value for found in list_notes(graph, target("e1"))] == ["of e1"]


def test_taking_is_all_or_nothing(graph: Graph) -> None:
    class Interrupted(Exception):
        pass

    def interrupt() -> None:
        raise Interrupted

    before = dump(graph.connection)
    with pytest.raises(Interrupted):
        graph.import_events(rich().events, also=interrupt)
    assert dump(graph.connection) == before
    assert graph.connection.rows("SELECT * FROM execution") == []
