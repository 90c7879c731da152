"""What lies on the ways from one thing to another."""

from itertools import pairwise
from typing import Any

import pytest
from tests.unit.prov.conftest import Ask
from tests.unit.prov.execution_builder import ExecutionBuilder

from clew.documents.lineage.lineage import PathsBetween
from clew.prov.graph import Graph
from clew.prov.queries.lineage.paths_between import find_paths


@pytest.fixture
def ask(graph: Graph, target: Ask) -> Any:
    """raw → (clean, log) by e1; clean → left and right → both by e2, with a setting of its own."""
    a = ExecutionBuilder("a")
    p = a.process("clean")
    a.read(p, "/w/raw", "RAW")
    a.write(p, "/w/clean", "CLEAN")
    a.write(p, "/w/log", "LOG")
    graph.fold(a.end().events)
    b = ExecutionBuilder("b", at=10_000)
    left, right, join = b.process("left"), b.process("right"), b.process("join")
    b.read(left, "/w/clean", "CLEAN")
    b.write(left, "/w/l", "L")
    b.read(right, "/w/clean", "CLEAN")
    b.read(right, "/w/setting", "S")
    b.write(right, "/w/r", "R")
    for path, text in (("/w/l", "L"), ("/w/r", "R")):
        b.read(join, path, text)
    b.write(join, "/w/both", "BOTH")
    graph.fold(b.end().events)
    return lambda one, other: find_paths(graph, target(one), target(other))


def ids(answer: PathsBetween) -> set[str]:
    return {node.id for node in answer.nodes}


WAYS = {
    "e1:/w/raw@1", "e1.p1", "e1:/w/clean@1", "e2.p1", "e2.p2", "e2:/w/l@1", "e2:/w/r@1", "e2.p3",
    "e2:/w/both@1",
}  # fmt: skip


def test_every_way_is_found_and_nothing_beside_them(ask: Any) -> None:
    found = ask("e1:raw", "e2:both")
    assert ids(found) == WAYS  # neither the log nor the setting
    assert (found.start, found.end) == ("e1:/w/raw@1", "e2:/w/both@1")
    assert all(edge.start in WAYS and edge.end in WAYS for edge in found.edges)


def test_the_shortest_way_leads_from_one_to_the_other(ask: Any) -> None:
    found = ask("e1:raw", "e2:both")
    way = found.shortest
    assert (way[0], way[-1], len(way)) == ("e1:/w/raw@1", "e2:/w/both@1", 7)
    edges = {(edge.start, edge.end) for edge in found.edges}
    assert set(pairwise(way)) <= edges


def test_whichever_comes_first(ask: Any) -> None:
    assert ids(ask("e2:both", "e1:raw")) == WAYS


def test_what_is_not_tied(ask: Any) -> None:
    found = ask("e1:log", "e2:both")
    assert (found.start, found.end, found.nodes, found.shortest) == (None, None, (), ())


def test_processes_and_whole_executions(ask: Any) -> None:
    assert ids(ask("e1.p1", "e2.p1")) == {"e1.p1", "e1:/w/clean@1", "e2.p1"}
    found = ask("e1", "e2:l")
    assert ids(found) == {"e1.p1", "e1:/w/clean@1", "e2.p1", "e2:/w/l@1"}
    assert found.start == "e1"
    whole = ask("e1", "e2")
    assert {"e1.p1", "e1:/w/clean@1", "e2.p3"} <= ids(whole)


def test_a_thing_and_itself(ask: Any) -> None:
    assert ids(ask("e1:raw", "e1:raw")) == {"e1:/w/raw@1"}
