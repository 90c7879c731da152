"""An execution's rows as events again: folded elsewhere they are the same record."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from tests.unit.prov.conftest import Ask
from tests.unit.prov.story import Story, digest
from tests.unit.prov.test_fold import PROJECT, dump, folded, stories

from clew.db import Connection, connect
from clew.prov.events import AnyEvent
from clew.prov.export.notes import export_notes, import_notes
from clew.prov.export.recorded_events import export_events, stored_digests
from clew.prov.graph import Graph
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
def test_another_project_tells_the_same_story(events: list[AnyEvent]) -> None:
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


def rich() -> Story:
    story = Story(
        "a", name="n", environment={"A": "1", "Ü": ""}, facets={"kind": "repetition", "x": [1]}
    )
    process = story.process("cat", "x", environment={"A": None})
    story.read(process, b"/w/\xff", "A", package="pkg:deb/debian/x@1", source="https://x/y")
    story.write(process, "/w/b", "B", finished=True)
    story.look(process, "/w", "listing", digest("names"))
    story.delete(process, "/w/b")
    story.inform(process, story.uid)
    story.alias("/w/a", "/w/b")
    story.gap(process, "x", "y", "/w/gap")
    story.end(3, processes=1)
    return story


def test_every_kind_of_event_comes_back_on_both_databases(connection: Connection) -> None:
    story = rich()
    graph = Graph(connection, PROJECT)
    graph.fold(story.events)
    again = export_events(graph, find_execution(graph, story.uid))
    assert {type(event) for event in again} == {type(event) for event in story.events}
    assert folded(again) == dump(connection) == folded(story.events)
    assert stored_digests(again) == {digest("A"), digest("B"), digest("names")}


def test_what_only_has_a_digest_is_a_fact_without_bytes(graph: Graph) -> None:
    story = Story("a")
    version = story.write(story.process("x"), "/w/a")
    story.content(version, "big", stored=False)
    graph.fold(story.events)
    again = export_events(graph, find_execution(graph, story.uid))
    assert stored_digests(again) == set()
    assert any(getattr(event, "digest", None) == digest("big") for event in again)


def test_a_parent_that_was_forgotten_is_left_out(graph: Graph) -> None:
    first = Story("a").end()
    second = Story("b", at=2000, parent=first.uid).end()
    graph.fold([*first.events, *second.events])
    assert export_events(graph, find_execution(graph, second.uid))[0].parent == first.uid  # type: ignore[union-attr]
    graph.remove(first.uid)
    assert export_events(graph, find_execution(graph, second.uid))[0].parent is None  # type: ignore[union-attr]


def test_notes_travel_and_come_back_as_one(graph: Graph, target: Ask) -> None:
    story = Story("a")
    process = story.process("cat")
    story.read(process, "/w/in", "A")
    story.write(process, "/w/out", "B")
    graph.fold(story.end().events)
    other = Story("b", at=5000)
    other.read(other.process("x"), "/w/other", "C")
    graph.fold(other.end().events)
    for text, now in (("e1", {}), ("e1.p1", {}), ("e1:/w/out", {}), ("/w/in", {"in": "A"})):
        add_note(graph, target(text, **now), "said", f"of {text}", agent="ann")
    add_note(graph, target("e2"), "said", "elsewhere", agent="ann")
    told = export_notes(graph, find_execution(graph, story.uid))
    assert [remark.value for remark in told] == ["of e1", "of e1.p1", "of e1:/w/out", "of /w/in"]

    there = Graph(graph.connection, "q" * 32)
    there.import_events(story.events, also=lambda: import_notes(there, story.uid, told))
    assert export_notes(there, find_execution(there, story.uid)) == told
    assert graph.connection.atomically(lambda: import_notes(there, story.uid, told)) == 0
    assert (
        graph.connection.atomically(lambda: import_notes(graph, story.uid, told)) == 0
    )  # home again
    assert [found["value"] for found in list_notes(graph, target("e1"))] == ["of e1"]


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
