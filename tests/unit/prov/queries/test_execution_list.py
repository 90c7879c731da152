"""Executions selected by filters, newest first, and `latest`."""

from datetime import UTC, datetime

import pytest
from tests.unit.prov.execution_builder import ExecutionBuilder

from clew.errors import NotFound, UsageError
from clew.prov.graph import Graph
from clew.prov.queries.execution_list import (
    list_executions,
    parse_conditions,
    select_executions,
)
from clew.prov.queries.executions import find_execution
from clew.prov.queries.notes import add_note
from clew.prov.queries.targets import Target

SECOND = 10**9
MANY = ["a b " * 26, "x" * 1001, "\udcff"]
"""More words or characters than a database can search for, and no text."""


def note(graph: Graph, id: str, name: str, value: str) -> None:  # noqa: A002
    add_note(
        graph, Target("execution", id, (find_execution(graph, id).key,)), name, value, agent="a"
    )


@pytest.fixture
def filled(graph: Graph) -> Graph:
    """e1 `Größe`, e2 failed, e3 a worker, e4 its task, e5 without an end, e6 made elsewhere."""
    graph.fold(
        ExecutionBuilder("a", at=SECOND, command=("train", "--rate", "0.5%"), name="Größe")
        .end().events
    )  # fmt: skip
    graph.fold(ExecutionBuilder("b", at=2 * SECOND, command=("make", 'say "hi"')).end(2).events)
    for uid, label in (("c", "worker"), ("d", "r1/train~2")):
        builder = ExecutionBuilder(uid, at=3 * SECOND)
        builder.process("python", name=label)
        graph.fold(builder.end().events)
    graph.fold(ExecutionBuilder("e", at=4 * SECOND).events)
    graph.import_events(ExecutionBuilder("f", at=5 * SECOND, command=("true",)).end().events)
    note(graph, "e1", "remark", "the Best so far")
    note(graph, "e2", "tag", "slow")
    note(graph, "e1", "tag", "slow")
    note(graph, "e1", "untag", "slow")
    note(graph, "e4", "tag", "baseline")
    return graph


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ([], "e6 e5 e4 e2 e1"),
        (["state:failed"], "e2"),
        (["state:broken"], "e5"),
        (["state:done", "made:here"], "e4 e1"),
        (["made:elsewhere"], "e6"),
        (["name:gr"], "e1"),
        (["name:r1/Train"], "e4"),
        (["tag:slow"], "e2"),
        (["SLOW"], "e2"),
        (["best"], "e1"),
        (["remark=the"], "e1"),
        (["0.5%"], "e1"),
        (["train --rate"], "e1"),
        (['"hi"'], "e2"),
        (["r1/train"], "e4"),
        (["0_5"], ""),
        (["untag"], ""),
        (["http://x"], ""),
    ],
)
def test_filters(filled: Graph, filters: list[str], ids: str) -> None:
    found, _ = list_executions(filled, parse_conditions(filters), alive=lambda _: False)
    assert [execution.id for execution in found] == ids.split()


def test_the_rest_is_counted(filled: Graph) -> None:
    for filters in ([], ["made:here"], ["state:done"]):
        conditions = parse_conditions(filters)
        everything = select_executions(filled, conditions, alive=lambda _: False)
        found = list_executions(filled, conditions, alive=lambda _: False, limit=2)
        assert found == (everything[:2], len(everything) - 2)
    since = parse_conditions([], since=datetime.fromtimestamp(4, UTC), workers=True)
    assert len(select_executions(filled, since, alive=lambda _: False)) == 2
    assert (
        len(select_executions(filled, parse_conditions([], workers=True), alive=lambda _: False))
        == 6
    )


def test_pages_and_documents(filled: Graph) -> None:
    conditions = parse_conditions([], workers=True)
    found = select_executions(filled, conditions, alive=lambda _: True, before=5, limit=2)
    assert [(e.id, e.task, e.worker, e.tags) for e in found] == [
        ("e4", "r1/train", False, ("baseline",)),
        ("e3", None, True, ()),
    ]


def test_a_project_that_is_not_ones_own(filled: Graph) -> None:
    for filters, count in ((["made:elsewhere"], 5), (["made:here"], 0)):
        conditions = parse_conditions(filters, foreign=True)
        assert len(select_executions(filled, conditions, alive=lambda _: False)) == count


@pytest.mark.parametrize("text", ["state:bad", "state:", "made:there"])
def test_unknown_values(text: str) -> None:
    with pytest.raises(UsageError, match="there is no"):
        parse_conditions([text])


def test_latest(graph: Graph) -> None:
    with pytest.raises(NotFound):
        find_execution(graph, "latest")
    graph.fold(ExecutionBuilder("a").end().events)
    worker = ExecutionBuilder("b")
    worker.process("python", name="worker")
    graph.fold(worker.end().events)
    assert find_execution(graph, "latest").id == "e1"
    with pytest.raises(UsageError, match="'latest' cannot be a name"):
        graph.begin("c" * 32, name="latest")


@pytest.mark.parametrize("text", MANY)
def test_filters_are_limited(text: str) -> None:
    with pytest.raises(UsageError, match="the filters have more than"):
        parse_conditions([text])
