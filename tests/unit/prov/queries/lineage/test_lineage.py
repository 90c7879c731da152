"""Where things came from and what they went into, across executions."""

from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.prov.conftest import Ask
from tests.unit.prov.execution_builder import ExecutionBuilder, digest, locator

from clew.documents.lineage.lineage import Direction, Lineage, Node
from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage import trace_lineage
from clew.prov.queries.notes import add_note, list_notes
from clew.prov.queries.targets import Target


def drawn(answer: Lineage) -> set[str]:
    return {f"{e.start} {e.kind} {e.end}" for e in answer.edges}


def names(answer: Lineage) -> set[str]:
    return {node.id for node in answer.nodes}


def node(answer: Lineage, name: str) -> Node:
    return next(n for n in answer.nodes if n.id == name)


def has_no_cycle(answer: Lineage) -> bool:
    order: TopologicalSorter[str] = TopologicalSorter()
    for edge in answer.edges:
        order.add(edge.end, edge.start)
    list(order.static_order())
    return True


@pytest.fixture
def workflow(graph: Graph) -> None:
    """raw → clean (e1), clean → model (e2, through a pipe and a rename), model → report (e3)."""
    a = ExecutionBuilder("a")
    p = a.process("python", "clean.py")
    a.read(p, "/w/raw", "RAW")
    a.read(p, "/usr/lib/libc.so", "LIBC", package="pkg:deb/debian/libc6@2")
    a.read(p, "/etc/ld.so.cache", "CACHE")
    a.write(p, "/w/clean", "CLEAN")
    b = ExecutionBuilder("b", at=10_000)
    cat, train = b.process("cat", "clean"), b.process("train")
    b.read(cat, "/w/clean", "CLEAN")
    b.inform(train, cat)
    b.read(train, "/w/config", "C1")
    b.write(train, "/w/tmp", "MODEL")
    b.rename(train, "/w/tmp", "/w/model", "MODEL")
    b.read(train, "/w/later", "L")
    b.write(train, "/w/other", "O")
    c = ExecutionBuilder("c", at=20_000)
    r = c.process("report")
    c.read(r, "/w/model", "MODEL")
    c.read(r, "/w/config", "C2")
    c.write(r, f"stream://{c.uid}/stdout", "fine")
    for builder in (c, b, a):  # late and in any order
        graph.fold(builder.end().events)


@pytest.fixture
def trace(graph: Graph, target: Ask) -> Any:
    def ask(text: str, direction: Direction = "up", **options: Any) -> Lineage:
        return trace_lineage(graph, target(text), direction=direction, **options)

    return ask


@pytest.mark.usefixtures("workflow")
class TestWorkflow:
    # Numbers are given out as executions arrive: c is e1, b is e2, a is e3.

    def test_up_to_the_sources(self, trace: Any) -> None:
        answer = trace("e1:model")
        assert drawn(answer) == {
            "e2.p2 generated e2:/w/model@1",
            "e2.p1 informed e2.p2",
            "e2:/w/config@1 used e2.p2",
            "e3:/w/clean@1 used e2.p1",
            "e3.p1 generated e3:/w/clean@1",
            "e3:/w/raw@1 used e3.p1",
        }
        assert answer.target == "e2:/w/model@1"
        assert answer.direction == "up"
        assert has_no_cycle(answer)

    def test_what_was_used_after_the_file_was_finished_is_not_in_it(self, trace: Any) -> None:
        assert "e2:/w/later@1" not in names(trace("e2:model"))
        assert "e2:/w/later@1" in names(trace("e2:other"))

    def test_files_of_packages_and_of_the_system_are_counted(self, trace: Any) -> None:
        assert node(trace("e3:clean"), "e3.p1").hidden == 2
        everything = trace("e3:clean", everything=True)
        assert {"e3:/usr/lib/libc.so@1", "e3:/etc/ld.so.cache@1"} < names(everything)
        assert node(everything, "e3.p1").hidden == 0

    def test_down(self, trace: Any) -> None:
        answer = trace("e3:raw", "down")
        assert drawn(answer) == {
            "e3:/w/raw@1 used e3.p1",
            "e3.p1 generated e3:/w/clean@1",
            "e3:/w/clean@1 used e2.p1",
            "e2.p1 informed e2.p2",
            "e2.p2 generated e2:/w/tmp@1",
            "e2.p2 generated e2:/w/model@1",
            "e2.p2 generated e2:/w/other@1",
            "e2:/w/model@1 used e1.p1",
            "e1.p1 generated e1:stdout@1",
        }
        assert node(answer, "e1:stdout@1").kind == "stream"
        assert has_no_cycle(answer)

    def test_down_leaves_out_what_was_finished_before(self, trace: Any) -> None:
        assert drawn(trace("e2:later", "down")) == {
            "e2:/w/later@1 used e2.p2",
            "e2.p2 generated e2:/w/other@1",
        }

    def test_depth(self, trace: Any) -> None:
        assert names(trace("e1:model", depth=0)) == {"e2:/w/model@1"}
        assert "e3.p1" not in names(trace("e1:model", depth=1))
        assert "e3.p1" in names(trace("e1:model", depth=2))

    def test_a_limit_is_said(self, trace: Any) -> None:
        assert not trace("e1:model").truncated
        assert trace("e1:model", limit=2).truncated

    def test_changed_outside(self, trace: Any) -> None:
        answer = trace("e1:stdout")
        assert node(answer, "e1:/w/config@1").changed_outside
        assert not node(answer, "e2:/w/config@1").changed_outside
        assert not node(answer, "e3:/w/raw@1").changed_outside

    def test_a_file_that_is_different_now(self, graph: Graph, target: Ask) -> None:
        answer = trace_lineage(graph, target("raw", raw="edited"))
        [only] = answer.nodes
        assert (only.label, only.changed_outside, answer.edges) == ("/w/raw", True, ())

    def test_of_a_process_and_of_an_execution(self, trace: Any) -> None:
        assert "e2:/w/later@1 used e2.p2" in drawn(trace("e2.p2"))
        assert "e2.p2 generated e2:/w/model@1" in drawn(trace("e2.p2", "down"))
        answer = trace("e2")
        assert {"e2 part e2.p1", "e2 part e2.p2", "e3.p1 generated e3:/w/clean@1"} < drawn(answer)

    def test_sources_and_notes(self, graph: Graph, trace: Any, target: Ask) -> None:
        add_note(graph, target("raw", raw="RAW"), "source", "https://example.org/raw", agent="ann")
        add_note(graph, target("e2"), "mood", "good", agent="ann")
        add_note(graph, target("e2"), "mood", "better", agent="bob")
        assert node(trace("e1:model"), "e3:/w/raw@1").source == "https://example.org/raw"
        assert [(n.key, n.value, n.agent) for n in list_notes(graph, target("e2"))] == [
            ("mood", "good", "ann"),
            ("mood", "better", "bob"),
        ]
        assert [n.value for n in list_notes(graph, target("e3:raw"))] == ["https://example.org/raw"]

    def test_a_note_on_a_version_is_forgotten_with_it(self, graph: Graph, target: Ask) -> None:
        add_note(graph, target("e2:model"), "k", "v", agent="ann")
        graph.remove("b" * 32)
        assert graph.connection.rows("SELECT count(*) FROM note") == [(0,)]


def test_shared_memory_is_a_place_of_files_and_other_devices_are_not(
    graph: Graph, trace: Any
) -> None:
    builder = ExecutionBuilder("a")
    maker, user = builder.process("make"), builder.process("use")
    builder.write(maker, "/dev/shm/x", "X")
    builder.write(maker, "/dev/tty9", "T")
    for path in ("/dev/shm/x", "/dev/tty9", "/proc/cpuinfo", "/sys/x"):
        builder.read(user, path)
    builder.write(user, "/w/out", "O")
    graph.fold(builder.end().events)
    assert names(trace("e1:out")) == {"e1:/w/out@1", "e1.p2", "e1:/dev/shm/x@1", "e1.p1"}


def test_a_source_may_be_said_before_anything_ran(graph: Graph, target: Ask) -> None:
    builder = ExecutionBuilder("a")
    builder.read(builder.process("x"), "/w/raw", "RAW")
    unknown = Target("file", "raw", (), locator=locator("/w/raw"), digest=digest("RAW"))
    add_note(graph, unknown, "source", "https://example.org/raw", agent="ann")
    [only] = trace_lineage(graph, target("raw", raw="RAW")).nodes
    assert only.source == "https://example.org/raw"
    graph.fold(builder.events)
    answer = trace_lineage(graph, target("raw", raw="RAW"))
    assert node(answer, "e1:/w/raw@1").source == "https://example.org/raw"


def test_a_file_going_from_a_to_b_to_a_makes_no_cycle(graph: Graph, trace: Any) -> None:
    texts = ["A", "B", "A", "B", "A"]
    for i, (old, new) in enumerate(pairwise(texts)):
        builder = ExecutionBuilder("abcd"[i], at=10_000 * (i + 1))
        p = builder.process("turn")
        builder.read(p, "/w/f", old)
        builder.write(p, "/w/f", new)
        graph.fold(builder.end().events)
    answer = trace("e4:f")
    assert has_no_cycle(answer)
    assert drawn(answer) == {
        "e1:/w/f@1 used e1.p1",
        "e1.p1 generated e1:/w/f@2",
        "e1:/w/f@2 used e2.p1",
        "e2.p1 generated e2:/w/f@2",
        "e2:/w/f@2 used e3.p1",
        "e3.p1 generated e3:/w/f@2",
        "e3:/w/f@2 used e4.p1",
        "e4.p1 generated e4:/w/f@2",
    }
    assert has_no_cycle(trace("e1:f@input", "down"))


def test_two_runs_that_write_the_same_bytes_are_two_makers(graph: Graph, trace: Any) -> None:
    for i, uid in enumerate("abc"):
        builder = ExecutionBuilder(uid, at=10_000 * (i + 1))
        p = builder.process("x")
        if uid == "c":
            builder.read(p, "/w/f", "same")
            builder.write(p, "/w/g", "g")
        else:
            builder.write(p, "/w/f", "same")
        graph.fold(builder.end().events)
    assert "e2:/w/f@1 used e3.p1" in drawn(trace("e3:g"))
    assert trace("e1:f", "down").edges == ()


def test_one_raw_file_read_by_many_is_one_source(graph: Graph, trace: Any) -> None:
    for i, uid in enumerate("abc"):
        builder = ExecutionBuilder(uid, at=10_000 * (i + 1))
        p = builder.process("x")
        builder.read(p, "/w/raw", "RAW")
        builder.write(p, f"/w/{uid}", uid)
        graph.fold(builder.end().events)
    assert "e1:/w/raw@1" in names(trace("e3:c"))
    for asked in ("e1:raw", "e3:raw"):
        assert {"e1:/w/a@1", "e2:/w/b@1", "e3:/w/c@1"} < names(trace(asked, "down"))


def test_a_child_that_never_became_another_program_has_its_parents_memory(
    graph: Graph, trace: Any
) -> None:
    builder = ExecutionBuilder("a")
    parent = builder.process("python")
    builder.read(parent, "/w/before", "1")
    child = builder.process("python", parent=parent, forked=True)
    builder.read(parent, "/w/after", "2")
    builder.write(child, "/w/out", "3")
    program = builder.process("cat", parent=parent)
    builder.write(program, "/w/apart", "4")
    graph.fold(builder.end().events)
    found = names(trace("e1:out"))
    assert "e1:/w/before@1" in found
    assert "e1:/w/after@1" not in found
    assert names(trace("e1:apart")) == {"e1:/w/apart@1", "e1.p3"}
    assert "e1:/w/out@1" in names(trace("e1:before", "down"))
    assert "e1:/w/out@1" not in names(trace("e1:after", "down"))


def test_processes_that_talk_both_ways_end_the_walk(graph: Graph, trace: Any) -> None:
    builder = ExecutionBuilder("a")
    one, two = builder.process("one"), builder.process("two")
    builder.inform(one, two, "socket")
    builder.inform(two, one, "socket")
    builder.read(one, "/w/in", "i")
    builder.write(one, "/w/x", "x")
    builder.read(two, "/w/x")
    builder.write(two, "/w/y", "y")
    builder.read(one, "/w/y")
    builder.write(one, "/w/z", "z")
    graph.fold(builder.end().events)
    assert {"e1:/w/in@1", "e1:/w/x@1", "e1:/w/y@1"} < names(trace("e1:z"))
    assert "e1:/w/z@1" in names(trace("e1:in", "down"))


def test_a_moved_file_comes_from_the_old_name(graph: Graph, trace: Any) -> None:
    builder = ExecutionBuilder("a")
    make, move = builder.process("make"), builder.process("mv")
    builder.write(make, "/w/old", "x")
    builder.delete(move, "/w/old", how="rename")  # a witness that says no more than this
    builder.write(move, "/w/new", "x", how="rename")
    graph.fold(builder.end().events)
    assert drawn(trace("e1:new")) == {
        "e1.p1 generated e1:/w/old@1",
        "e1:/w/old@1 used e1.p2",
        "e1.p2 generated e1:/w/new@1",
    }


def test_a_version_without_a_digest_is_not_linked(graph: Graph, trace: Any) -> None:
    first = ExecutionBuilder("a")
    first.write(first.process("x"), "/w/f", "f")
    later = ExecutionBuilder("b", at=9000)
    p = later.process("y")
    later.read(p, "/w/f")
    later.write(p, "/w/g", "g")
    graph.fold(first.events + later.events)
    answer = trace("e2:g")
    assert "e2:/w/f@1" in names(answer)
    assert node(answer, "e2:/w/f@1").digest is None
    assert not node(answer, "e2:/w/f@1").changed_outside


def test_what_a_process_only_moved_does_not_come_from_what_else_it_read(
    graph: Graph, trace: Any
) -> None:
    builder = ExecutionBuilder("a")
    keeper, maker = builder.process("keeper"), builder.process("maker")
    builder.read(keeper, "/w/list", "l")
    builder.read(maker, "/w/in", "i")
    builder.write(maker, "/w/old", "x")
    builder.rename(keeper, "/w/old", "/w/new", "x")
    builder.write(keeper, "/w/report", "r")
    graph.fold(builder.end().events)
    assert drawn(trace("e1:new")) == {
        "e1.p1 generated e1:/w/new@1",
        "e1:/w/old@1 used e1.p1",
        "e1.p2 generated e1:/w/old@1",
        "e1:/w/in@1 used e1.p2",
    }
    assert "e1:/w/report@1" not in names(trace("e1:in", "down"))
    assert "e1:/w/new@1" in names(trace("e1:in", "down"))
    assert names(trace("e1:report")) == {"e1:/w/report@1", "e1.p1", "e1:/w/list@1"}
