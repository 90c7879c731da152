"""The version of a topic differs after a change of the topic, and only then."""

from tests.unit.prov.cluster.cluster_builder import ClusterBuilder

from clew.documents.ids import Uid
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.run_queue import NewRun
from clew.prov.events import Ended, Started
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import experiments
from clew.server.catalogue.topic_versions import get_versions

UID = Uid("e" * 32)


def _changed(graph: Graph, before: dict[str, str]) -> set[str]:
    after = get_versions(graph)
    return {topic for topic in before if before[topic] != after[topic]}


def test_the_topic_of_what_changed_has_another_version(graph: Graph) -> None:
    seen = get_versions(graph)
    assert _changed(graph, seen) == set()

    graph.begin(UID)
    assert _changed(graph, seen) == {"executions"}

    seen = get_versions(graph)
    started = Started(execution=UID, n=1, at=1, activity=UID, kind="execution")
    ended = Ended(execution=UID, n=2, at=2, activity=UID, status=0)
    graph.fold([started, ended])
    assert _changed(graph, seen) == {"executions"}

    seen = get_versions(graph)
    experiment = experiments.require_active(graph, "")
    assert _changed(graph, seen) <= {"pipelines"}

    seen = get_versions(graph)
    run = run_queue.queue_run(graph, NewRun(experiment=experiment, name="r", spec="{}"))
    assert "runs" in _changed(graph, seen)

    seen = get_versions(graph)
    run_queue.cancel_request(graph, run)
    assert _changed(graph, seen) == {"runs"}


def test_what_agents_observe_changes_the_lineage_only(graph: Graph) -> None:
    seen = get_versions(graph)
    cluster = ClusterBuilder()
    pod = cluster.pod("team", "train").write("s3://lake/model", "model")
    cluster.fold(graph)
    assert _changed(graph, seen) == {"lineage"}
    seen = get_versions(graph)
    pod.end()
    cluster.fold(graph)
    assert _changed(graph, seen) == {"lineage"}
