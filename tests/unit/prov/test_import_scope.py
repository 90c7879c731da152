"""A record of another party describes its own execution, and changes nothing that is known."""

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from tests.unit.prov.execution_builder import ExecutionBuilder, digest
from tests.unit.prov.export.test_recorded_events import rich
from tests.unit.prov.test_fold import PROJECT, dump, folded, stories

from clew.db import connect
from clew.errors import ClewError, Rejected
from clew.prov.events import (
    AnyEvent,
    Content,
    Ended,
    Gap,
    Generated,
    Informed,
    Invalidated,
    Looked,
    Started,
    Used,
    Version,
)
from clew.prov.export.recorded_events import export_events
from clew.prov.graph import Graph
from clew.prov.import_scope import find_facts_out_of_scope
from clew.prov.queries.execution_record import find_inheriting_executions
from clew.prov.queries.executions import find_execution, get_execution, list_executions

EVIL = "e" * 32


def victim() -> ExecutionBuilder:
    builder = ExecutionBuilder("a")
    process = builder.process("make")
    builder.read(process, "/w/in", "IN")
    builder.write(process, "/w/out.txt", "GOOD")
    return builder.end()


MINE = victim()
PROCESS = "aaaaaaaa-1-0-0"
OUT = Version("file://m1/w/out.txt", PROCESS, 1)


def forged(event_type: type, /, **fields: object) -> AnyEvent:
    event: AnyEvent = event_type(execution=EVIL, n=999, at=1, **fields)
    return event


ATTACKS: dict[str, AnyEvent] = {
    "its end": forged(Ended, activity=MINE.uid, status=77),
    "its process's end": forged(Ended, activity=PROCESS, status=77),
    "its output": forged(
        Content, version=OUT, digest=digest("EVIL"), size=4, mode=0o100644, mtime=1
    ),
    "a new output": forged(
        Generated, activity=PROCESS, version=Version("file://m1/w/x", PROCESS, 1)
    ),
    "what it read": forged(Used, activity=PROCESS, version=Version("file://m1/w/x", EVIL, 1)),
    "who read it": forged(Used, activity=EVIL, version=OUT),
    "who made it": forged(Generated, activity=EVIL, version=OUT),
    "its removal": forged(Invalidated, activity=EVIL, version=OUT),
    "what it looked for": forged(Looked, activity=PROCESS, kind="absent", locator="file://m1/x"),
    "what it was told": forged(Informed, activity=PROCESS, by=EVIL, via="pipe"),
    "nobody": forged(Gap, activity="", what="x", why="y"),
    "a gap": forged(Gap, activity=MINE.uid, what="x", why="y"),
    "its beginning": forged(Started, activity=MINE.uid, kind="execution", command=("evil",)),
    "its process": forged(Started, activity=PROCESS, kind="process", command=("evil",)),
    "a uid to come": forged(Started, activity="d" * 32, kind="process"),
    "a run": forged(Started, activity=EVIL, kind="run"),
}


@pytest.mark.parametrize("what", ATTACKS)
def test_a_record_describes_its_own_execution_only(graph: Graph, what: str) -> None:
    """Whether the other one was recorded here or imported, and in every possible order."""
    for add in (graph.fold, graph.import_events):
        add(MINE.events)
        before = dump(graph.connection)
        with pytest.raises(Rejected) as told:
            graph.import_events([*ExecutionBuilder("e").end().events, ATTACKS[what]])
        assert told.value.exit_status == 4
        assert dump(graph.connection) == before
        assert [e.uid for e in list_executions(graph, alive=lambda _: False)] == [MINE.uid]
        graph.remove(MINE.uid)


def test_one_batch_of_two_executions_keeps_them_apart(graph: Graph) -> None:
    with pytest.raises(Rejected):
        graph.import_events([*MINE.events, *ExecutionBuilder("e").events, ATTACKS["its output"]])
    assert graph.connection.rows("SELECT * FROM execution") == []


FORGERIES: dict[str, AnyEvent] = {
    "status": Ended(execution=MINE.uid, n=500, at=1, activity=MINE.uid, status=77),
    "bytes": Content(
        execution=MINE.uid, n=500, at=1, version=OUT, digest=digest("EVIL"), size=4,
        mode=0o100644, mtime=1,
    ),
    "command": Started(
        execution=MINE.uid, n=0, at=1, activity=MINE.uid, kind="execution", command=("evil",)
    ),
    "time": Used(
        execution=MINE.uid, n=500, at=0, activity=PROCESS,
        version=Version("file://m1/w/in", MINE.uid, 1),
    ),
    "process": Started(
        execution=MINE.uid, n=500, at=1, activity="aaaaaaaa-2-0-0", kind="process"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGERIES)
def test_what_is_known_is_not_changed_in_its_own_name(graph: Graph, what: str) -> None:
    for add in (graph.fold, graph.import_events):
        add(MINE.events)
        before = dump(graph.connection)
        for record in ([FORGERIES[what]], [*MINE.events, FORGERIES[what]]):
            with pytest.raises(Rejected):
                graph.import_events(record)
        assert dump(graph.connection) == before
        graph.import_events(MINE.events)  # the same once more is no change
        assert dump(graph.connection) == before
        graph.remove(MINE.uid)


def test_two_records_of_one_execution_must_agree(graph: Graph) -> None:
    """As two documents at a remote are: neither wins by its numbers."""
    with pytest.raises(Rejected):
        graph.import_events(MINE.events, [FORGERIES["bytes"]])
    assert graph.connection.rows("SELECT * FROM execution") == []


def test_an_open_execution_grows(graph: Graph) -> None:
    """A witness may send what it sees as it sees it; the end closes the record."""
    begun = ExecutionBuilder("b")
    process = begun.process("x")
    version = begun.write(process, "/w/a")
    half = list(begun.events)
    begun.content(version, "A")
    begun.read(process, "/w/b", "B")
    begun.end()
    graph.import_events(half)
    graph.import_events(begun.events[len(half) :])
    graph.import_events(begun.events)
    assert get_execution(graph, begun.uid, alive=lambda _: False).output_count == 1
    begun.read(process, "/w/c", "C")
    with pytest.raises(Rejected):
        graph.import_events(begun.events)


def test_events_of_others_do_not_change_a_running_execution(graph: Graph) -> None:
    """Also a repeat of an imported one, which counts as made elsewhere."""
    graph.import_events(MINE.events)
    running = ExecutionBuilder("b")
    graph.begin(running.uid, parent=MINE.uid)
    graph.fold(running.events)
    with pytest.raises(Rejected):
        graph.import_events([Ended(execution=running.uid, n=9, at=9, activity=running.uid)])
    assert find_execution(graph, running.uid).made_elsewhere


def test_references_to_others_are_no_facts_about_them(graph: Graph) -> None:
    graph.fold(MINE.events)
    before = export_events(graph, find_execution(graph, MINE.uid))
    other = ExecutionBuilder(
        "b", parent=MINE.uid, facets={"inherits": MINE.uid, "collection": MINE.uid}
    )
    other.inform(other.process("x"), PROCESS, "fork")
    graph.import_events(other.end().events)
    assert get_execution(graph, other.uid, alive=lambda _: False).parent == "e1"
    assert export_events(graph, find_execution(graph, MINE.uid)) == before
    assert (
        find_inheriting_executions(graph, [MINE.uid]) == []
    )  # nobody else's record keeps one from being removed


def test_a_process_that_was_claimed_before_it_started_is_the_recorders(graph: Graph) -> None:
    """Its uid (boot, pid, start) can be guessed; an imported record that guessed it is removed."""
    squatter = ExecutionBuilder("e")
    squatter._add(Started, activity=PROCESS, kind="process", number=1, command=("evil",))
    squatter.write(PROCESS, "/w/stolen", "EVIL")
    graph.import_events(squatter.end().events)
    graph.fold(MINE.events)
    assert [e.uid for e in list_executions(graph, alive=lambda _: False)] == [MINE.uid]
    assert {e.n for e in export_events(graph, find_execution(graph, MINE.uid))} == {
        e.n for e in MINE.events
    }


def test_ids_that_collide_are_refused(graph: Graph) -> None:
    """64 bits are few: a row that is there under the same id for another thing is never taken."""
    graph.import_events(MINE.events)
    other = ExecutionBuilder("b")
    other.read(other.process("x"), "/w/in", "IN")
    for change in (
        "UPDATE location SET locator = 'file://m1/another'",
        "UPDATE execution SET uid = 'another'",
    ):
        graph.connection.rows(change)
        builder = other.events if "location" in change else MINE.events
        with pytest.raises(Rejected):
            graph.import_events(builder)


def test_an_execution_cannot_take_the_uid_of_a_run(graph: Graph) -> None:
    graph.begin_run(MINE.uid)
    with pytest.raises(Rejected):
        graph.import_events(MINE.events)
    assert graph.connection.rows("SELECT * FROM execution") == []


def test_a_name_is_not_a_uid(graph: Graph) -> None:
    graph.fold(MINE.events)
    graph.import_events(ExecutionBuilder("e", name=MINE.uid).end().events)
    assert find_execution(graph, MINE.uid).number == 1
    assert list_executions(graph, alive=lambda _: False)[1].name is None
    with pytest.raises(ClewError):
        graph.begin("c" * 32, name=MINE.uid)


def test_facts_that_older_versions_imported_are_found(graph: Graph) -> None:
    graph.fold(MINE.events)
    assert list(find_facts_out_of_scope(graph)) == []
    attacks = [ATTACKS[name] for name in ("its end", "a new output")]
    attacks.append(msgspec.structs.replace(ATTACKS["who read it"], at=10**6))
    graph.fold([*ExecutionBuilder("e").events, *attacks])  # as imports were folded then
    assert set(find_facts_out_of_scope(graph)) == {
        ("it ended with several statuses", "e1"),
        ("it says something about a version of e1 (used)", "e2"),
        ("it says something about a version of e2 (generated)", "e1"),
        ("it says that a process of e1 made one of its versions", "e2"),
    }


def test_every_kind_of_event_is_imported(graph: Graph) -> None:
    graph.import_events(rich().events)
    imported = dump(graph.connection)
    graph.remove(rich().uid)
    graph.fold(rich().events)
    assert dump(graph.connection) == imported


@given(stories())
def test_importing_is_folding_where_nothing_is_known(events: list[AnyEvent]) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        connect(Path(directory) / "g.db") as connection,
    ):
        graph = Graph(connection, PROJECT)
        for _ in range(2):
            graph.import_events(events)
            assert dump(connection) == folded(events)
