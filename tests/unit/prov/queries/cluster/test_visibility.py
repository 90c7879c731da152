"""A caller sees the lineage of the namespaces that the caller may read, and how much is hidden."""

import pytest
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder
from tests.unit.prov.execution_builder import ExecutionBuilder
from tests.unit.prov.queries.cluster.test_cluster_lineage import labels, pods, trace

from clew.errors import NotAllowed
from clew.prov.graph import Graph
from clew.prov.queries.cluster import visibility
from clew.prov.queries.cluster.visibility import check_content
from clew.prov.queries.executions import find_execution, list_executions
from clew.prov.queries.search.search import search
from clew.prov.row_keys import digest_text


@pytest.fixture
def shared(graph: Graph) -> Graph:
    """Team `a` publishes an object, team `b` makes a report of it, and a laptop reads that."""
    cluster = ClusterBuilder()
    cluster.pod("a", "secret-raw").write("s3://lake/raw", "raw").end()
    cluster.pod("a", "publish").read("s3://lake/raw", "raw").write("s3://lake/public", "data").end()
    cluster.pod("b", "report").read("s3://lake/public", "data").write("s3://lake/report", "1").end()
    cluster.fold(graph)
    laptop = ExecutionBuilder("e", at=cluster.now)
    laptop.read(laptop.process("plot"), "s3://lake/report", "1")
    graph.fold(laptop.end().events)
    return graph


def test_other_namespaces_are_counted_and_not_shown(shared: Graph) -> None:
    everything = trace(shared, "s3://lake/report")
    assert pods(everything) == {"secret-raw", "publish", "report"}
    assert not everything.withheld
    shared.restrict(lambda namespace: namespace == "b")
    seen = trace(shared, "s3://lake/report")
    assert pods(seen) == {"report"}
    assert "s3://lake/public" in labels(seen)  # the Pod of `b` read it
    assert "s3://lake/raw" not in labels(seen)
    assert seen.withheld == len(everything.nodes) - len(seen.nodes)
    assert {edge.start for edge in seen.edges} <= {node.id for node in seen.nodes}


def test_what_is_hidden_cannot_be_named(shared: Graph) -> None:
    hidden = find_execution(shared, "e1").id
    shared.restrict(lambda namespace: namespace == "b")
    for text in ("pod/a/publish", "pod/a/no-such-pod", "pvc://a/data/x", "configmap/a/x", hidden):
        with pytest.raises(NotAllowed):
            trace(shared, text)
    assert {hit.label for hit in search(shared, "lake", limit=50)} == {
        "s3://lake/public",
        "s3://lake/report",
    }


def test_without_a_namespace_only_what_laptops_recorded_is_left(shared: Graph) -> None:
    shared.restrict(lambda _: False)
    down = trace(shared, "e4")
    assert "s3://lake/report" in labels(down)
    assert not pods(down)
    with pytest.raises(NotAllowed):
        trace(shared, "s3://lake/raw")


def test_one_permitted_version_of_many_is_enough(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visibility, "HOLDERS_AT_ONCE", 2)
    cluster = ClusterBuilder()
    for number in range(9):
        cluster.pod("a", f"p{number}").write(f"s3://lake/{number}", "same").end()
    cluster.pod("b", "reader").read("s3://lake/8", "same").end()
    cluster.fold(graph)
    ((text,),) = graph.connection.rows(
        "SELECT DISTINCT c.digest FROM content c JOIN version v ON v.id = c.version"
        " JOIN location l ON l.id = v.location WHERE l.locator LIKE ?",
        ("s3://%",),
    )
    digest = digest_text(text)
    assert digest is not None
    for namespace in "ab":
        graph.restrict(lambda one, namespace=namespace: one == namespace)
        check_content(graph, digest)
    graph.restrict(lambda _: False)
    with pytest.raises(NotAllowed):
        check_content(graph, digest)


def test_a_list_of_executions_has_no_pods(shared: Graph) -> None:
    assert [one.id for one in list_executions(shared, alive=lambda _: False)] == ["e4"]
