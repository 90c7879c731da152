"""Numbers and names of executions, and forgetting them."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.unit.prov.execution_builder import ExecutionBuilder, digest

from clew.db import Connection, connect
from clew.errors import NotFound, UsageError
from clew.prov.graph import Graph
from clew.prov.queries.contents import list_live_digests
from clew.prov.queries.executions import find_execution, list_executions

PROJECT = "p" * 32


@pytest.fixture
def graph(connection: Connection) -> Graph:
    return Graph(connection, PROJECT)


def test_numbers_count_up_and_asking_again_gives_the_same(graph: Graph) -> None:
    assert [graph.begin(uid * 32) for uid in "abcb"] == [1, 2, 3, 2]


def test_an_imported_execution_and_its_repeats_are_made_elsewhere(graph: Graph) -> None:
    graph.fold(ExecutionBuilder("a").end().events)
    graph.import_events(ExecutionBuilder("b").end().events)
    graph.begin("c" * 32, parent="a" * 32)
    graph.begin("d" * 32, parent="b" * 32)
    graph.begin("e" * 32, parent="d" * 32)
    graph.import_events(ExecutionBuilder("a").end().events)  # it is known already, as made here
    assert [find_execution(graph, f"e{n}").made_elsewhere for n in range(1, 6)] == [
        *(False, True, False, True, True)
    ]


def test_two_programs_at_once_get_different_numbers(database: tuple[Path, str | None]) -> None:
    path, address = database
    given: list[int] = []
    failed: list[BaseException] = []

    def begin(who: int) -> None:
        try:
            with connect(path, address=address) as connection:
                graph = Graph(connection, PROJECT)
                given.extend(graph.begin(f"{who:016}{i:016}") for i in range(20))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=begin, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(given) == list(range(1, 81))


def test_two_programs_at_once_fold_the_same_events(database: tuple[Path, str | None]) -> None:
    path, address = database
    events = []
    for uid in "abc":
        builder = ExecutionBuilder(uid)
        process = builder.process("x")
        for i in range(300):
            builder.read(process, f"/w/{i}", str(i))
        events += builder.end().events
    failed: list[BaseException] = []

    def fold(backwards: bool) -> None:
        try:
            with connect(path, address=address) as connection:
                Graph(connection, PROJECT).fold(reversed(events) if backwards else events)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=fold, args=(who % 2 == 0,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with connect(path, address=address) as connection:
        assert connection.rows("SELECT count(*) FROM used") == [(900,)]
        assert len(list_executions(Graph(connection, PROJECT), alive=lambda _: False)) == 3


def test_a_number_is_never_given_out_again(graph: Graph) -> None:
    graph.begin("a" * 32)
    graph.begin("b" * 32)
    graph.remove("b" * 32)
    assert graph.begin("c" * 32) == 3


def test_the_number_of_a_withdrawn_execution_is_given_out_again(graph: Graph) -> None:
    graph.begin("a" * 32)
    graph.withdraw("a" * 32)
    assert graph.begin("b" * 32) == 1
    graph.begin("c" * 32)
    graph.withdraw("b" * 32)  # a later one exists
    assert graph.begin("d" * 32) == 3


def test_a_name_is_given_once(graph: Graph) -> None:
    graph.begin("a" * 32, name="train")
    with pytest.raises(UsageError, match="e1"):
        graph.begin("b" * 32, name="train")
    assert graph.begin("b" * 32, name="train2") == 2
    graph.remove("a" * 32)
    assert graph.begin("c" * 32, name="train") == 3


@pytest.mark.parametrize("name", ["", " ", "e1", "e12.p3", "r4", "a:b", "a/b", "a@2", "a\nb"])
def test_a_name_must_not_read_as_something_else(graph: Graph, name: str) -> None:
    with pytest.raises(UsageError):
        graph.begin("a" * 32, name=name)


def test_a_name_in_events_is_used_if_it_is_free(graph: Graph) -> None:
    graph.begin("a" * 32, name="taken")
    graph.fold(ExecutionBuilder("b", name="taken").events)
    graph.fold(ExecutionBuilder("c", name="free").events)
    names = [e.name for e in list_executions(graph, alive=lambda _: False)]
    assert names == ["taken", None, "free"]


def test_an_unknown_execution_is_named_with_a_near_one(graph: Graph) -> None:
    graph.begin("a" * 32, name="training")
    with pytest.raises(NotFound) as unknown:
        find_execution(graph, "trainin")
    assert "training" in unknown.value.hint
    with pytest.raises(NotFound):
        find_execution(graph, "e99999999999999999999999999")


def test_forgetting_removes_all_and_only_what_one_execution_said(graph: Graph) -> None:
    def tell(uid: str) -> ExecutionBuilder:
        builder = ExecutionBuilder(uid)
        process = builder.process("x")
        builder.read(process, "/w/shared", "same")
        builder.read(process, "/w/own", uid)
        builder.write(process, "/w/out", f"out {uid}")
        builder.delete(process, "/w/out")
        builder.look(process, "/w/none")
        builder.inform(process, builder.uid)
        builder.alias("/w/own", "/w/out")
        builder.gap(process, "x", "y", "/w/own")
        builder.gap(builder.uid, "x", "y")
        return builder.end()

    def rows() -> dict[str, int]:
        tables = (
            "execution", "started", "ended", "version", "content", "used", "generated",
            "invalidated", "looked", "informed", "alias", "gap", "note",
        )  # fmt: skip
        return {t: graph.connection.rows(f"SELECT count(*) FROM {t}")[0][0] for t in tables}

    graph.fold(tell("a").events)
    alone = rows()
    assert all(count for table, count in alone.items() if table != "note")
    graph.fold(tell("b").events)
    graph.remove("b" * 32)
    assert rows() == alone
    assert list_live_digests(graph) == {digest("same"), digest("a"), digest("out a")}
    graph.remove("a" * 32)
    assert set(rows().values()) == {0}
    assert list_live_digests(graph) == set()


def test_content_that_was_not_stored_is_not_live(graph: Graph) -> None:
    builder = ExecutionBuilder("a")
    process = builder.process("x")
    builder.read(process, "/w/big", "big", stored=False)
    builder.read(process, "/w/small", "small")
    graph.fold(builder.events)
    assert list_live_digests(graph) == {digest("small")}


_FOLDING = """
import sys
from pathlib import Path
from tests.unit.prov.execution_builder import ExecutionBuilder
from clew.db import connect
from clew.prov.graph import Graph
graph = Graph(connect(Path(sys.argv[1])), "p" * 32)
for i in range(1000):
    builder = ExecutionBuilder(f"{i:032}")
    process = builder.process("x")
    for j in range(200):
        builder.read(process, f"/w/{j}", str(j))
    graph.fold(builder.end().events)
    print(i, flush=True)
"""


@pytest.mark.parametrize("told", [0, 1, 7, 30])
def test_a_program_killed_while_folding_loses_nothing_it_had_folded(
    tmp_path: Path, told: int
) -> None:
    path = tmp_path / "g.db"
    root = str(Path(__file__).parents[3])
    search = os.pathsep.join([root, *sys.path])
    folding = subprocess.Popen(
        [sys.executable, "-c", _FOLDING, str(path)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": search},
    )
    assert folding.stdout is not None
    with folding:
        for _ in range(told + 1):
            assert folding.stdout.readline()
        folding.kill()
    with connect(path) as connection:
        assert connection.rows("PRAGMA integrity_check") == [("ok",)]
        found = list_executions(Graph(connection, PROJECT), alive=lambda _: False)
        assert len(found) > told
        assert {e.state for e in found} == {"done"}
        [(count,)] = connection.rows("SELECT count(*) FROM content")
        assert count == 200 * len(found)
