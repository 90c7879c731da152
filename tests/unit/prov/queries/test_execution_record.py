"""One execution's record, read as a whole."""

from tests.unit.prov.execution_builder import ExecutionBuilder, digest

from clew.prov.graph import Graph
from clew.prov.queries.execution_record import load_record


def test_moves_pair_each_version_with_the_one_that_has_its_bytes(graph: Graph) -> None:
    builder = ExecutionBuilder("a")
    process = builder.process("swap")
    builder.read(process, "/w/mode", how="metadata")
    builder.same_time().write(process, "/w/mode", "mode", how="metadata")
    builder.read(process, "/w/a", how="exchange")
    builder.same_time().read(process, "/w/b", how="exchange")
    builder.same_time().write(process, "/w/a", "was b", how="exchange")
    builder.same_time(2).write(process, "/w/b", "was a", how="exchange")
    graph.fold(builder.end().events)

    record = load_record(graph, "e1")
    moved = {
        record.versions[key].locator.rpartition("/")[2]: (how, version.digest)
        for key, (how, version) in record.moves.items()
    }
    assert moved == {
        "a": ("exchange", digest("was a")),
        "b": ("exchange", digest("was b")),
        "mode": ("metadata", digest("mode")),
    }
