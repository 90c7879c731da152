"""Which executions an execution was derived from, and which were derived from it."""

from typing import Any

from tests.unit.prov.execution_builder import ExecutionBuilder

from clew.documents.executions.summary import Relatives
from clew.prov.graph import Graph
from clew.prov.queries.executions import find_execution
from clew.prov.queries.files import list_files
from clew.prov.queries.lineage.derived_executions import Derivations

DATA = "these bytes are long enough not to be equal by chance: " + "0123456789" * 3


def derivations(graph: Graph, name: str) -> Derivations:
    found = find_execution(graph, name)
    return Derivations(graph, found, list_files(graph, found.key))


def brief(relatives: Relatives) -> list[tuple[Any, ...]]:
    return [(one.id, one.how, *one.paths) for one in relatives.executions]


def test_files_copies_parameters_and_repetitions(graph: Graph) -> None:
    maker = ExecutionBuilder("a", at=1_000, name="maker")
    first = maker.process("make")
    maker.write(first, "/w/data", DATA)
    graph.fold(maker.end().events)
    user = ExecutionBuilder("b", at=2_000)
    second = user.process("use")
    user.read(second, "/w/data", DATA)
    user.write(second, "/w/model", "model")
    user.inform(second, first, via="parameter")
    graph.fold(user.end().events)
    copier = ExecutionBuilder("c", at=3_000)
    copier.read(copier.process("use"), "/w/moved", DATA)
    graph.fold(copier.end().events)
    again = {"parent": "b" * 32, "facets": {"kind": "modification"}}
    graph.fold(ExecutionBuilder("d", at=4_000, **again).end().events)

    assert brief(derivations(graph, "e1").derived_from()) == []
    assert brief(derivations(graph, "e1").derived()) == [
        ("e2", "file", "/w/data"),
        ("e2", "parameter"),
        ("e3", "copy", "/w/data"),
    ]
    assert derivations(graph, "e1").derived().total == 2
    assert brief(derivations(graph, "e2").derived_from()) == [
        ("e1", "file", "/w/data"),
        ("e1", "parameter"),
    ]
    assert brief(derivations(graph, "e2").derived()) == [("e4", "modification")]
    assert brief(derivations(graph, "e3").derived_from()) == [("e1", "copy", "/w/moved")]
    assert brief(derivations(graph, "e4").derived_from()) == [("e2", "modification")]
    (origin,) = {one.name for one in derivations(graph, "e2").derived_from().executions}
    assert origin == "maker"
