"""PROV documents, read back and compared by the `prov` package."""

import io
import json
import warnings

import msgspec
import pytest
from prov.model import (
    ProvActivity,
    ProvAgent,
    ProvAssociation,
    ProvCommunication,
    ProvDerivation,
    ProvDocument,
    ProvEntity,
    ProvGeneration,
    ProvInvalidation,
    ProvStart,
    ProvUsage,
)
from tests.unit.prov.execution_builder import ExecutionBuilder

from clew.prov.export import w3c
from clew.prov.graph import Graph


@pytest.fixture
def document(graph: Graph) -> tuple[ProvDocument, ProvDocument]:
    builder = ExecutionBuilder("a", agent='a "n" n\\', command=("sh", "-c", "a\nb\t'c' \"d\""))
    one = builder.process("sort", "raw")
    two = builder.process("mv", parent=one)
    builder.read(one, "/w/raw", "RAW")
    builder.read(one, "/usr/lib/x.so", "SO", package="pkg:deb/debian/x@1")
    builder.read(one, b"/w/\xff %41 [x]", "odd")
    builder.write(one, "/w/tmp", "T")
    builder.rename(two, "/w/tmp", "/w/out", "T")
    builder.inform(two, one)
    builder.read(two, "https://example.org/a?b=c&d=%20", how="fetch")
    graph.fold(builder.end().events)
    return read(w3c.export_prov_json(graph, "e1"), "json"), read(
        w3c.export_prov_n(graph, "e1"), "provn"
    )


def read(text: bytes, format: str) -> ProvDocument:  # noqa: A002
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own deprecations are not ours
        return ProvDocument.deserialize(io.BytesIO(text), format=format)


def test_both_notations_say_the_same(document: tuple[ProvDocument, ProvDocument]) -> None:
    as_json, as_notation = document
    assert as_json == as_notation


def test_everything_is_said(document: tuple[ProvDocument, ProvDocument]) -> None:
    kinds = {
        kind: len(list(document[0].get_records(kind)))
        for kind in (
            ProvEntity, ProvActivity, ProvAgent, ProvUsage, ProvGeneration, ProvInvalidation,
            ProvCommunication, ProvDerivation, ProvAssociation, ProvStart,
        )
    }  # fmt: skip
    assert list(kinds.values()) == [6, 3, 1, 5, 2, 1, 1, 3, 1, 2]


def test_a_version_is_described(document: tuple[ProvDocument, ProvDocument]) -> None:
    labels = {
        str(entity.label): {str(name): value for name, value in entity.attributes}
        for entity in document[0].get_records(ProvEntity)
    }
    assert labels["/w/raw"]["clew:size"].value == "3"
    assert labels["/w/raw"]["clew:found"] is True
    assert labels["/w/out"]["clew:version"] == "e1:/w/out@1"
    assert labels["/usr/lib/x.so"]["clew:package"] == "pkg:deb/debian/x@1"


def test_roles_and_derivations(document: tuple[ProvDocument, ProvDocument]) -> None:
    labels = {e.identifier: str(e.label) for e in document[0].get_records(ProvEntity)}
    derived = {
        tuple(labels[value] for _, value in record.formal_attributes[:2])
        for record in document[0].get_records(ProvDerivation)
    }
    assert derived == {
        ("/w/tmp", "/w/raw"),
        ("/w/tmp", "/w/\ufffd %41 [x]"),
        ("/w/out", "/w/tmp"),
    }
    roles = [
        str(value)
        for record in document[0].get_records(ProvGeneration)
        for name, value in record.extra_attributes
        if str(name) == "prov:role"
    ]
    assert sorted(roles) == ["rename", "write"]


def test_it_unifies(document: tuple[ProvDocument, ProvDocument]) -> None:
    """No element is described twice with facts that contradict each other."""
    unified = document[0].unified()
    assert len(list(unified.get_records())) == len(list(document[0].get_records()))


def test_a_moved_file_is_derived_from_the_earlier_version(graph: Graph) -> None:
    first, second = ExecutionBuilder("a"), ExecutionBuilder("b", at=10_000)
    first.write(first.process("make"), "/w/got", "X" * 100)
    second.read(second.process("use"), "/w/raw", "X" * 100)
    for builder in (first, second):
        graph.fold(builder.end().events)
    documents = [
        read(w3c.export_prov_json(graph, "e2"), "json"),
        read(w3c.export_prov_n(graph, "e2"), "provn"),
    ]
    assert documents[0] == documents[1]
    labels = {e.identifier: str(e.label) for e in documents[0].get_records(ProvEntity)}
    [derived] = documents[0].get_records(ProvDerivation)
    assert [labels[value] for _, value in derived.formal_attributes[:2]] == ["/w/raw", "/w/got"]
    extra = {str(name): str(value) for name, value in derived.extra_attributes}
    assert extra == {
        "prov:type": "clew:SameContent", "clew:observed": "False", "clew:strength": "strong"
    }  # fmt: skip


def test_no_word_of_a_record_becomes_a_statement(graph: Graph) -> None:
    builder = ExecutionBuilder("a", command=('"])\n  entity(clew:evil)',))
    p = builder.process("sh")
    builder.events[-1] = msgspec.structs.replace(
        builder.events[-1], kind="x'])\n  entity(clew:evil)\n  agent('"
    )
    builder.write(p, '/w/"\n  entity(clew:evil)', "OUT", how='"\n  entity(clew:evil)')
    graph.fold(builder.end(activity=p).end().events)
    assert "\n  entity(clew:evil)" not in w3c.export_prov_n(graph, "e1").decode()
    json.loads(w3c.export_prov_json(graph, "e1"))
