"""The Pods that a target depends on, as plans of a reproduction get them."""

import pytest
from tests.unit.prov.cluster.cluster_builder import (
    ClusterBuilder,
    digest,
    image_of,
    machine_learning,
)

from clew.documents.ids import Locator
from clew.prov.cluster.ancestry_types import Ancestry
from clew.prov.graph import Graph
from clew.prov.queries.cluster.ancestry.ancestry import find_ancestry, load_pod_facets
from clew.prov.queries.targets import Target, resolve_target
from clew.replay.pods.pod_plan import plan_pods


def ancestry(graph: Graph, text: str) -> Ancestry:
    return find_ancestry(graph, find_target(graph, text), everything=True)


def find_target(graph: Graph, text: str) -> Target:
    return resolve_target(
        graph, text, machine="m", locate=lambda path: path, digest_of=lambda _: None
    )


def test_each_pod_has_what_it_read_and_left(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.request("update", "configmaps", "team", "settings", data="depth: 3")
    pods = machine_learning(cluster)
    late = cluster.pod("team", "late", claims=["data"])
    late.use("configmap://team/settings").write("data/late").end()
    cluster.request("create", "pods", "team", "late", subresource="exec")
    cluster.fold(graph)
    found = ancestry(graph, "pvc://team/data/metrics.json")
    by_name = {pod.name: pod for pod in found.pods}
    # all that may be needed if files are not told apart, in the order of their start
    assert [*by_name] == ["ingest", "clean", "other", "train", "evaluate"]
    train = by_name["train"]
    assert [(one.locator, one.makers, one.digest) for one in train.inputs] == [
        ("pvc://team/data@pv-1/clean.csv", (pods["clean"].uid,), digest("clean")),
        ("s3://lake/labels", (pods["ingest"].uid,), digest("labels")),
    ]
    assert [made.locator for made in train.outputs] == ["pvc://team/data@pv-1/model.pkl"]
    assert train.images == {"main": image_of("train")}
    assert train.volumes == ("pvc://team/data@pv-1",)
    assert found.wanted[0].makers == (pods["evaluate"].uid,)
    assert found.wanted_volumes == ("pvc://team/data@pv-1",)
    (volume,) = found.volumes
    assert [uid for uid, _ in volume.writers][:2] == [pods["ingest"].uid, pods["clean"].uid]
    assert load_pod_facets(graph, [train.uid])[train.uid].name == "train"


def test_what_only_the_audit_witness_saw_is_a_volume(graph: Graph) -> None:
    cluster = ClusterBuilder()
    machine_learning(cluster)
    cluster.fold(graph, files=False)
    found = ancestry(graph, "pvc://team/data/metrics.json")
    assert [one.locator for one in found.wanted] == ["pvc://team/data@pv-1"]
    inputs = {pod.name: [one.locator for one in pod.inputs] for pod in found.pods}
    assert inputs["train"] == ["pvc://team/data@pv-1"]


def test_what_a_pod_connected_to_and_what_ran_there(graph: Graph) -> None:
    """Each peer once, however it was named; with what the Pods behind it had at the time."""
    cluster = ClusterBuilder()
    cluster.request("update", "configmaps", "team", "settings", data="depth: 3")
    service = cluster.service("team", "scores", "10.96.0.7")
    behind = [cluster.pod("team", name, image="serve") for name in ("one", "two")]
    for pod in behind:
        service.add(pod.use("configmap://team/settings"))
    alone = cluster.pod("team", "alone", address="10.0.0.9")
    client = cluster.pod("team", "client")
    client.connect("ip://10.96.0.7", "service://team/scores")
    client.connect("ip://10.96.0.7", "http://scores.example")
    client.connect("ip://10.0.0.9").connect("ip://93.0.0.1", "https://hub.example")
    client.connect("ip://93.0.0.2").write("s3://lake/out", "1", stored=False).end()
    cluster.request("update", "configmaps", "team", "settings", data="depth: 4")
    cluster.fold(graph)
    found = ancestry(graph, "s3://lake/out")
    peers = {peer.locator: peer for pod in found.pods if pod.name == "client" for peer in pod.peers}
    assert peers.keys() == {
        *("service://team/scores", "pod://team/alone", "https://hub.example", "ip://93.0.0.2"),
    }
    answered = peers[Locator("service://team/scores")].pods
    assert {pod.uid for pod in answered} == {pod.uid for pod in behind}
    for pod in answered:
        assert pod.images == {"main": image_of("serve")}
        assert pod.config_maps == {"settings": digest("depth: 3")}
    assert [pod.uid for pod in peers[Locator("pod://team/alone")].pods] == [alone.uid]
    plan = plan_pods(found)
    assert [choice.pod.name for choice in plan.run] == ["client"]
    assert {choice.why for choice in plan.skipped} == {
        "client talked to it: its answers are not recorded"
    }


def test_touches_and_config_maps_of_a_pod(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.request("update", "configmaps", "team", "settings", data="depth: 3")
    cluster.claim("team", "data", "pv-1")
    pod = cluster.pod("team", "late", claims=["data"], watched=True)
    pod.use("configmap://team/settings").write("data/late", "1")
    cluster.request("create", "pods", "team", "late", subresource="exec", agent="bob")
    pod.end()
    cluster.request("create", "pods", "team", "late", subresource="exec", agent="too late")
    cluster.fold(graph)
    (found,) = ancestry(graph, "pod/team/late").pods
    assert [(touch.how, touch.by) for touch in found.touched] == [("exec", "bob")]
    assert [(one.locator, one.digest, one.inferred) for one in found.inputs] == [
        ("configmap://team/settings", digest("depth: 3"), True)
    ]


def test_a_pod_that_runs_again_needs_what_it_read_after_it_left_the_target(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.pod("team", "first").write("s3://lake/late", "late", stored=False).end()
    second = cluster.pod("team", "second").write("s3://lake/out", "out", stored=False)
    second.read("s3://lake/late", "late", stored=False).end()
    cluster.fold(graph)
    plan = plan_pods(find_ancestry(graph, find_target(graph, "s3://lake/out")))
    assert [choice.pod.name for choice in plan.run] == ["first", "second"]


@pytest.mark.parametrize("target", ["out", "final"])
def test_a_file_that_another_pod_renamed_needs_both(graph: Graph, target: str) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    first = cluster.pod("team", "first", claims=["data"])
    first.write("data/draft", "draft", stored=False).end()
    second = cluster.pod("team", "second", claims=["data"])
    second.rename("data/draft", "data/final", "draft", stored=False).end()
    third = cluster.pod("team", "third", claims=["data"])
    third.read("data/final", "draft", stored=False).write("data/out", "out", stored=False).end()
    cluster.fold(graph)
    plan = plan_pods(find_ancestry(graph, find_target(graph, f"pvc://team/data/{target}")))
    names = [choice.pod.name for choice in plan.run]
    assert names == ["first", "second", "third"][: 3 if target == "out" else 2]


def test_what_a_pod_had_left_at_a_time(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    pod = cluster.pod("team", "mover", claims=["data"]).write("data/draft", "draft")
    before = cluster.now
    pod.rename("data/draft", "data/final", "draft").end()
    cluster.fold(graph)
    target = find_target(graph, "pod/team/mover")
    for as_of, left in ((before, "draft"), (None, "final")):
        found = find_ancestry(graph, target, as_of=as_of, everything=True)
        assert [one.locator for one in found.wanted] == [f"pvc://team/data@pv-1/{left}"]
