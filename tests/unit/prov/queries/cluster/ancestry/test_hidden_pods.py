"""A caller who may read some namespaces learns nothing of Pods in others from a plan: it leaves
them out, or is refused with their number."""

from collections.abc import Callable

import pytest
from msgspec import json
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder, digest, image_of

from clew.api.local.pod_record import find_pod_ancestry, find_pod_facets
from clew.errors import NotAllowed
from clew.prov.graph import Graph
from clew.replay.pods.pod_plan import plan_pods

REPORT = "s3://lake/report"
Build = Callable[[ClusterBuilder], object]


def find_shown(graph: Graph, target: str = REPORT) -> tuple[str, set[str], int]:
    """All that a caller who may read the namespace `seen` gets for a plan; the names of its Pods;
    and how many it has by volume."""
    graph.restrict(lambda namespace: namespace == "seen")
    found = find_pod_ancestry(graph, target, None)
    plan = plan_pods(found)
    names = {choice.pod.name for choice in (*plan.run, *plan.skipped)}
    reasons = [choice.why for choice in (*plan.run, *plan.skipped)]
    return json.encode((found, reasons)).decode(), names, plan.pods_by_volume


def fold(graph: Graph, *steps: Build) -> None:
    cluster = ClusterBuilder()
    for step in steps:
        step(cluster)
    cluster.fold(graph)


def make_report(cluster: ClusterBuilder) -> None:
    pod = cluster.pod("seen", "report").read("s3://lake/data", "data", stored=False)
    pod.write(REPORT, "report", stored=False).end()


def test_pods_that_only_answered_are_left_out_with_all_behind_them(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("secret", "models", "pv-secret")
    cluster.request("update", "configmaps", "secret", "settings", data="depth: 3")
    cluster.pod("seen", "far").write("s3://lake/far", "far").end()
    cluster.pod("secret", "trainer", claims=["models"]).write("models/secret.bin", "model").end()
    service = cluster.service("secret", "scores", "10.96.0.7")
    answer = cluster.pod("secret", "answer", image="secret", claims=["models"], address="10.0.0.9")
    answer.use("configmap://secret/settings").read("models/secret.bin", "model")
    answer.read("s3://lake/far", "far")
    service.add(answer)
    client = cluster.pod("seen", "client").connect("ip://10.96.0.7", "https://scores.example")
    client.connect("ip://10.0.0.9").connect("ip://10.96.0.7")
    client.connect("service://secret/scores").write(REPORT, "report", stored=False).end()
    cluster.fold(graph)
    everything = plan_pods(find_pod_ancestry(graph, REPORT, None))
    assert {one.pod.name for one in everything.skipped} == {"far", "trainer", "answer"}
    text, names, by_volume = find_shown(graph)
    assert names == {"client"}
    assert by_volume == 1
    for hidden in ("secret", "far", answer.uid, image_of("secret"), digest("depth: 3")):
        assert hidden not in text
    assert "https://scores.example" in text, "the name that the client gave"
    assert "ip://10.0.0.9" in text


def make_by_object(cluster: ClusterBuilder) -> None:
    cluster.pod("secret", "maker").write("s3://lake/data", "data", stored=False).end()
    make_report(cluster)


def make_stored_by_object(cluster: ClusterBuilder) -> None:
    cluster.pod("secret", "maker").write("s3://lake/data", "data").end()
    make_report(cluster)


def make_before_what_is_stored(cluster: ClusterBuilder) -> None:
    """The number of Pods by volume counts the hidden one."""
    cluster.pod("secret", "maker").write("s3://lake/raw", "raw").end()
    middle = cluster.pod("seen", "middle").read("s3://lake/raw", "raw")
    middle.write("s3://lake/data", "data").end()
    make_report(cluster)


def make_on_a_node(cluster: ClusterBuilder) -> None:
    cluster.pod("secret", "maker").write("file://m1/shared", "1").end()
    pod = cluster.pod("seen", "report").read("file://m1/shared", "1")
    pod.write(REPORT, "report", stored=False).end()


def use_a_hidden_config_map(cluster: ClusterBuilder) -> None:
    cluster.request("update", "configmaps", "secret", "settings", data="depth: 3")
    pod = cluster.pod("seen", "report").use("configmap://secret/settings")
    pod.write(REPORT, "report", stored=False).end()


@pytest.mark.parametrize(
    "build",
    [
        make_by_object,
        make_stored_by_object,
        make_before_what_is_stored,
        make_on_a_node,
        use_a_hidden_config_map,
    ],
)
def test_a_plan_that_depends_on_what_is_hidden_is_refused_with_a_number(
    graph: Graph, build: Build
) -> None:
    fold(graph, build)
    assert plan_pods(find_pod_ancestry(graph, REPORT, None)).run
    with pytest.raises(NotAllowed) as refused:
        find_shown(graph)
    said = f"{refused.value.message} {refused.value.hint}"
    assert said.startswith("it depends on Pods or files in namespaces that you may not read: 1"), (
        said
    )
    for hidden in ("secret", "maker", "raw", "m1"):
        assert hidden not in said


def test_whether_a_plan_is_refused_does_not_depend_on_pods_that_it_does_not_run(
    graph: Graph,
) -> None:
    """What such a Pod read from its node is neither shown nor a reason to refuse, wherever the Pod
    is among those that run."""

    def build(cluster: ClusterBuilder) -> None:
        cluster.claim("seen", "data", "pv-1")
        cluster.pod("secret", "maker").write("file://m1/shared", "shared").end()
        for name, path in (("spare", "data/spare"), ("first", "data/first")):
            pod = cluster.pod("seen", name, claims=["data"]).read("file://m1/shared", "shared")
            pod.write(path, name, stored=name == "spare").end()
        last = cluster.pod("seen", "last", claims=["data"]).read("data/first", "first")
        last.write(REPORT, "report", stored=False).end()

    fold(graph, build)
    text, names, by_volume = find_shown(graph)
    assert names == {"spare", "first", "last"}
    assert by_volume == 3
    assert digest("shared") not in text


def test_a_target_that_only_hidden_pods_met_is_refused(graph: Graph) -> None:
    cluster = ClusterBuilder()
    pod = cluster.pod("secret", "maker").read("s3://lake/raw", "raw")
    pod.write(REPORT, "report").end()
    cluster.fold(graph)
    for target in ("s3://lake/raw", REPORT, "e1", "e1:s3://lake/raw@1", "e1:s3://lake/none@1"):
        with pytest.raises(NotAllowed) as refused:
            find_shown(graph, target)
        assert refused.value.message == "it is in a namespace that you may not read"
    with pytest.raises(NotAllowed) as refused:
        find_pod_facets(graph, [pod.uid])
    assert "secret" not in refused.value.message
