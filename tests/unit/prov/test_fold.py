"""The fold is a union: no order, no repetition, no cut changes what the events that arrived say."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.prov.execution_builder import ExecutionBuilder

from clew.db import Connection, connect
from clew.prov import tables
from clew.prov.events import AnyEvent, from_batch, from_lines, to_batch, to_lines
from clew.prov.fold import Rows
from clew.prov.graph import Graph

PROJECT = "p" * 32
_PATHS = st.sampled_from(["/w/a", "/w/b", "/w/c", "/w/ü", b"/w/\xff"])
ALSO = ("link", "file://m1/w/x", "y")
_TEXTS = st.sampled_from(["A", "B", "C"])


@st.composite
def stories(draw: st.DrawFn) -> list[AnyEvent]:
    """Some executions whose processes read, write, rename, delete, look and talk at random."""
    events: list[AnyEvent] = []
    for i, uid in enumerate(
        draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    ):
        builder = ExecutionBuilder(
            uid, at=1000 * (i + 1), name=draw(st.sampled_from([None, "first"]))
        )
        processes = [builder.process("sh")]
        for _ in range(draw(st.integers(0, 12))):
            process = draw(st.sampled_from(processes))
            path = draw(_PATHS)
            match draw(st.integers(0, 8)):
                case 0:
                    processes.append(builder.process("x", parent=process))
                case 1 | 2:
                    builder.read(process, path, draw(st.none() | _TEXTS))
                case 3 | 4:
                    builder.write(process, path, draw(st.none() | _TEXTS))
                case 5:
                    version = builder.write(process, path, "A")
                    builder.content(version, "B", stored=False)
                case 6:
                    builder.look(process, "/w/none", "absent", "", ALSO)
                    builder.alias("/w/a", "/w/b")
                case 7:
                    builder.inform(process, draw(st.sampled_from(processes)))
                case _:
                    builder.gap(process, "mmap", "written through a mapping", "/w/a")
        if draw(st.booleans()):
            builder.end(0, processes=len(processes))
        events += builder.events
    return events


def dump(connection: Connection) -> dict[str, list[tuple[object, ...]]]:
    """All facts. Numbers and the times of beginning are this database's own, and left out."""
    return {
        table: sorted(connection.rows(f"SELECT {', '.join(columns)} FROM {table}"), key=repr)
        for table, columns in tables.COLUMNS.items()
    }


def folded(*batches: list[AnyEvent]) -> dict[str, list[tuple[object, ...]]]:
    with (
        tempfile.TemporaryDirectory() as directory,
        connect(Path(directory) / "g.db") as connection,
    ):
        graph = Graph(connection, PROJECT)
        for batch in batches:
            graph.fold(batch)
        return dump(connection)


@given(st.data(), stories())
def test_order_repetition_and_batches_do_not_matter(
    data: st.DataObject, events: list[AnyEvent]
) -> None:
    mixed = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events)))))
    cut = data.draw(st.integers(0, len(mixed)))
    assert folded(mixed[:cut], mixed[cut:]) == folded(events)


@given(st.data(), stories())
def test_a_trace_cut_at_any_byte_gives_the_graph_of_its_whole_lines(
    data: st.DataObject, events: list[AnyEvent]
) -> None:
    lines = list(to_lines(events))
    text = b"".join(lines)
    cut = data.draw(st.integers(0, len(text)))
    arrived = list(from_lines(text[:cut].splitlines(keepends=True)))
    assert arrived == events[: len(arrived)]
    assert sum(map(len, lines[: len(arrived)])) <= cut
    assert len(arrived) == len(events) or sum(map(len, lines[: len(arrived) + 1])) > cut
    assert folded(arrived, events) == folded(events)


@given(stories())
def test_events_survive_both_encodings(events: list[AnyEvent]) -> None:
    assert list(from_lines(to_lines(events))) == events
    assert from_batch(to_batch(events)) == events


def test_both_databases_hold_the_same_rows(connection: Connection) -> None:
    builder = ExecutionBuilder("a", name="n", environment={"A": "1"}, facets={"kind": "repetition"})
    process = builder.process("cat", "x")
    builder.read(process, b"/w/\xff", "A", package="pkg:deb/debian/x@1")
    builder.write(process, "/w/b", "B")
    builder.look(process, "/w/none", "absent", "", ALSO)
    builder.delete(process, "/w/b")
    builder.inform(process, builder.uid)
    builder.alias("/w/a", "/w/b")
    builder.gap(process, "x", "y")
    builder.end(3, processes=1)
    rows = Rows(PROJECT)
    rows.add(builder.events)
    expected = {name: sorted(found, key=repr) for name, found in rows.tables().items()}
    for _ in range(2):
        Graph(connection, PROJECT).fold(reversed(builder.events))
        assert dump(connection) == expected


def test_an_unknown_event_type_is_passed_over() -> None:
    builder = ExecutionBuilder("a")
    [line] = to_lines(builder.events)
    newer = line.replace(b'"started"', b'"teleported"')
    richer = line.replace(b'"kind"', b'"colour":"red","kind"')
    assert list(from_lines([newer, richer])) == builder.events
    packed = b"\x91\x82\xa5event\xaateleported\xa9execution\xd9\x20" + b"a" * 32
    assert from_batch(packed) == []


def test_a_malformed_event_of_a_known_type_is_an_error() -> None:
    import msgspec

    with pytest.raises(msgspec.ValidationError):
        list(from_lines([b'{"event":"ended","execution":"x","n":1,"at":"noon"}\n']))


def test_one_project_is_not_seen_by_another(connection: Connection) -> None:
    from clew.prov.queries.executions import list_executions

    one, other = Graph(connection, "1" * 32), Graph(connection, "2" * 32)
    events = ExecutionBuilder("a").end().events
    one.fold(events)
    assert list_executions(other, alive=lambda _: False) == []
    other.fold(events)
    other.remove("a" * 32)
    assert [e.id for e in list_executions(one, alive=lambda _: False)] == ["e1"]
    assert list_executions(other, alive=lambda _: False) == []
