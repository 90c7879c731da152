"""What records made elsewhere claim: marked, behind what was recorded here, and not reused."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.prov.conftest import Ask
from tests.unit.prov.execution_builder import ExecutionBuilder, digest, locator

from clew import signing
from clew.db import Connection
from clew.prov.events import Version
from clew.prov.export.note_transfer import LONGEST, PortableNote, export_notes, import_notes
from clew.prov.graph import Graph
from clew.prov.imported_signatures import Signature, add_signatures
from clew.prov.queries.contents import find_producers
from clew.prov.queries.executions import find_execution
from clew.prov.queries.lineage.lineage import trace_lineage
from clew.prov.queries.notes import add_note, find_current_source, list_notes
from clew.prov.queries.same_command import find_same_command
from clew.prov.tables import IMPORTED


def maker(uid: str, at: int, text: str = "BYTES") -> ExecutionBuilder:
    builder = ExecutionBuilder(uid, at=at)
    builder.write(builder.process("make"), "/w/file", text)
    return builder.end()


@pytest.fixture
def reader(graph: Graph) -> ExecutionBuilder:
    """e1, recorded here, found a file."""
    builder = ExecutionBuilder("c", at=5_000)
    builder.read(builder.process("cat"), "/w/file", "BYTES")
    graph.fold(builder.end().events)
    return builder


def producers(graph: Graph, target: Ask, text: str = "e1:/w/file") -> dict[str, Any]:
    answer = trace_lineage(graph, target(text), direction="up")
    return {n.id: n.made_elsewhere for n in answer.nodes if n.kind == "process"}


def test_a_producer_made_elsewhere_is_marked(
    graph: Graph, target: Ask, reader: ExecutionBuilder
) -> None:
    graph.import_events(maker("e", at=4_000).events)
    assert producers(graph, target) == {"e2.p1": True}
    assert producers(graph, target, "e2:/w/file") == {"e2.p1": True}


def test_it_never_replaces_the_one_that_was_recorded_here(
    graph: Graph, target: Ask, reader: ExecutionBuilder
) -> None:
    """Though it claims to be later, and so nearer to what was found."""
    graph.import_events(maker("e", at=4_000).events)
    graph.fold(maker("a", at=1_000).events)
    assert producers(graph, target) == {"e3.p1": False}
    assert target("/w/file", file="BYTES").execution in (1, 3)
    assert [one.number for one in find_producers(graph, digest("BYTES"))] == [3, 2]


def test_a_name_made_elsewhere_does_not_stand_for_a_file(
    graph: Graph, target: Ask, reader: ExecutionBuilder
) -> None:
    begun, *rest = maker("e", at=4_000).events
    graph.import_events([msgspec.structs.replace(begun, name="file"), *rest])
    assert find_execution(graph, "file").id == "e2"
    assert target("file", file="BYTES").kind == "version"
    assert target("file").execution == 2
    assert target("e2", e2="BYTES").kind == "execution"


def test_an_imported_record_does_not_mark_a_file_as_changed_outside(
    graph: Graph, target: Ask, reader: ExecutionBuilder
) -> None:
    graph.import_events(maker("e", at=4_000, text="OTHER").events)
    builder = ExecutionBuilder("f", at=4_500)
    builder.read(builder.process("x"), "/w/file", "BYTES")
    graph.import_events(builder.end().events)  # and who found it first is not theirs to say, either
    answer = trace_lineage(graph, target("e1:/w/file"), direction="up")
    (node,) = answer.nodes
    assert (node.execution, node.changed_outside, node.made_elsewhere) == (
        "e1", False, False,
    )  # fmt: skip


def test_imported_notes_concern_their_own_execution(
    graph: Graph, target: Ask, reader: ExecutionBuilder
) -> None:
    other = ExecutionBuilder("e", at=4_000)
    process = other.process("x")
    version = other.read(process, "/w/file", "BYTES")
    other.write(process, "/w/out", "OUT")
    graph.import_events(other.end().events)
    said: dict[str, Any] = {"at": 2**60, "agent": "eve", "name": "source", "value": "https://evil"}
    mine = Version(locator("/w/file"), reader.uid, 1)
    place = locator("/w/file")
    remarks = [
        PortableNote(**said, activity=reader.uid),
        PortableNote(**said, activity="cccccccc-1-0-0"),
        PortableNote(**said, version=mine, locator=place),
        PortableNote(**said, locator=locator("/w/elsewhere"), digest=digest("BYTES")),
        PortableNote(**said, locator=place, digest=digest("OTHER")),
        PortableNote(**said),
        PortableNote(**said | {"value": "x" * (LONGEST + 1)}, activity=other.uid),
        *(PortableNote(**said | {"value": v}, activity=other.uid) for v in ("a\0b", "\ud800")),
    ]
    before = graph.connection.rows("SELECT * FROM note")
    assert graph.connection.atomically(lambda: import_notes(graph, other.uid, remarks)) == 0
    assert graph.connection.rows("SELECT * FROM note") == before

    for at in (-1, 2**62 + 1, 2**70):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(said | {"at": at}, PortableNote)

    add_note(graph, target("e1:/w/file"), "source", "https://mine", agent="me")
    good = [
        *[PortableNote(**said, activity=process)] * 2,
        PortableNote(**said, version=version, locator=place, digest=digest("BYTES")),
        PortableNote(**said, locator=place, digest=digest("BYTES"), version=mine),
    ]
    assert graph.connection.atomically(lambda: import_notes(graph, other.uid, good)) == 2
    assert [one.value for one in list_notes(graph, target("e1:/w/file"))] == ["https://mine"]
    assert find_current_source(graph, place, digest("BYTES")) == "https://mine"
    told = list_notes(graph, target("e2:/w/file"))
    assert {one.value for one in told} == {"https://mine", "https://evil"}
    answer = trace_lineage(graph, target("e1:/w/file"), direction="up")
    assert {n.source for n in answer.nodes} == {"https://mine"}
    assert {r.value for r in export_notes(graph, find_execution(graph, reader.uid))} == {
        "https://mine"
    }


def started(uid: str, at: int) -> ExecutionBuilder:
    builder = ExecutionBuilder(uid, at=at)
    builder.process("train", facets={"begun": {"at": at, "held": []}})
    return builder.end()


def test_only_believed_executions_are_reused(connection: Connection, tmp_path: Path) -> None:
    """A record may claim that my command makes other bytes: it counts if it is the one that is
    repeated, or if a known signer signed it."""
    graph = Graph(connection, "p" * 32, signers=tmp_path)
    mine, evil, copy = started("a", 1_000), started("e", 9_000), started("f", 9_500)
    graph.fold(mine.events)
    graph.import_events(evil.events)
    graph.begin(copy.uid, parent=evil.uid)  # a repeat of it, which may have reused what it claims
    graph.fold(copy.events)

    def alike(believed: str = "") -> list[str]:
        again = Graph(connection, "p" * 32, signers=tmp_path)
        found = find_same_command(again, "/bin/x", ("train",), "/w", believed=believed)
        return [uid for uid, _ in found]

    assert alike() == [mine.uid]
    assert alike(believed=evil.uid) == [evil.uid, mine.uid]
    signing.create_key(tmp_path, "ann")
    (key,) = signing.allowed(tmp_path)
    signature = Signature(key, "blake3:x", "text")
    connection.atomically(lambda: add_signatures(graph, evil.uid, [signature], evil.events))
    assert graph.made_elsewhere(evil.uid) == IMPORTED
    assert alike() == [evil.uid, mine.uid]
    (tmp_path / "allowed_signers").unlink()
    assert alike() == [mine.uid]
