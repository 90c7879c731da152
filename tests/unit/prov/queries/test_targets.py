"""What a user may type, and what it names."""

import os

import pytest
from tests.unit.prov.conftest import Ask
from tests.unit.prov.execution_builder import ExecutionBuilder, digest

from clew.errors import ClewError, NotFound, UsageError
from clew.prov.graph import Graph


@pytest.fixture(autouse=True)
def history(graph: Graph) -> None:
    builder = ExecutionBuilder("a", name="prep")
    p = builder.process("x")
    builder.read(p, "/w/f", "one")
    builder.write(p, "/w/f", "two")
    builder.write(p, "/w/f", "three")
    builder.write(p, "/w/sub/made", "m")
    builder.write(p, "/w/img@2", "i")
    builder.read(p, b"/w/\xff", "bytes")
    builder.write(p, f"stream://{builder.uid}/stdout", "hello")
    graph.fold(builder.end().events)
    later = ExecutionBuilder("b", at=9000)
    later.read(later.process("x"), "/w/f", "three")
    later.read(later.process("y"), "/w/other", "two")
    graph.fold(later.end().events)


@pytest.mark.parametrize(
    ("text", "kind", "label"),
    [
        ("e1", "execution", "e1"),
        ("prep", "execution", "e1"),
        ("b" * 32, "execution", "e2"),
        ("e2.p2", "process", "e2.p2"),
        ("prep.p1", "process", "e1.p1"),
        ("e1:f", "version", "e1:/w/f@3"),
        ("e1:/w/f", "version", "e1:/w/f@3"),
        ("e1:sub/../f", "version", "e1:/w/f@3"),
        ("prep:f@input", "version", "e1:/w/f@1"),
        ("e1:f@2", "version", "e1:/w/f@2"),
        ("e2:f", "version", "e2:/w/f@1"),
        ("e1:img@2", "version", "e1:/w/img@2@1"),
        ("e1:img@2@1", "version", "e1:/w/img@2@1"),
        ("e1:stdout", "version", "e1:stdout@1"),
        (os.fsdecode(b"e1:\xff"), "version", "e1:/w/%FF@1"),
        ("e1:/w/%FF@1", "version", "e1:/w/%FF@1"),
        (digest("m")[:15], "version", digest("m")),
    ],
)
def test_names(target: Ask, text: str, kind: str, label: str) -> None:
    found = target(text)
    assert (found.kind, found.label) == (kind, label)


def test_a_version_carries_its_bytes(target: Ask) -> None:
    found = target("e1:f@2")
    assert (found.digest, found.size, found.mode, found.stored) == (
        digest("two"),
        3,
        0o100644,
        True,
    )


def test_a_path_is_the_file_as_it_is_now(target: Ask) -> None:
    assert target("f", f="three").label == "e2:/w/f@1"
    assert target("f", f="two").label == "e1:/w/f@2"
    assert target("/w/f", f="one").label == "e1:/w/f@1"
    changed = target("f", f="something else")
    assert (changed.kind, changed.keys, changed.digest) == ("file", (), digest("something else"))


def test_a_name_comes_before_a_file_and_a_path_is_always_a_path(graph: Graph, target: Ask) -> None:
    assert target("prep", prep="x").kind == "execution"
    with pytest.raises(NotFound, match="read or wrote"):
        target("./prep", prep="x")


def test_bytes_may_be_in_several_places(target: Ask) -> None:
    assert len(target(digest("two")).keys) == 2


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("e9", NotFound, "clew list"),
        ("e9:f", NotFound, "clew list"),
        ("pre", NotFound, "prep"),
        ("e1.p9", NotFound, "clew show e1"),
        ("e1:nowhere", NotFound, "clew show e1 --detail"),
        ("e1:f@9", NotFound, "--list"),
        ("e1:sub/made@input", NotFound, "e1:sub/made"),
        ("f", NotFound, "e2:/w/f@1"),
        ("/w/never", NotFound, "clew list"),
        ("blake3:123", UsageError, "8"),
        ("blake3:zzzzzzzzzzzz", UsageError, "hex"),
        ("blake3:00000000", NotFound, "clew list"),
    ],
)
def test_what_is_not_there_is_said_with_a_hint(
    target: Ask, text: str, error: type[ClewError], hint: str
) -> None:
    with pytest.raises(error) as refused:
        target(text)
    assert hint in refused.value.hint


def test_a_file_recorded_on_another_machine_is_found_by_its_path(graph: Graph, target: Ask) -> None:
    builder = ExecutionBuilder("c", at=20_000)
    builder.read(builder.process("x"), "file://m2/w/far", "far")
    graph.fold(builder.events)
    assert target("e3:far").digest == digest("far")
