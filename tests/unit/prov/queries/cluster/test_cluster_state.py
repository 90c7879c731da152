"""What existed in a cluster at a time."""

import pytest
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder, digest, image_of, uid_of

from clew.documents.lineage.cluster_state import ClusterObject
from clew.prov.cluster.facets import Owner
from clew.prov.events import Ended, Invalidated
from clew.prov.graph import Graph
from clew.prov.queries.cluster import cluster_state
from clew.prov.queries.cluster.cluster_state import load_cluster_state


def names(graph: Graph, at: int, namespace: str | None = None) -> set[str]:
    objects = load_cluster_state(graph, at, namespace=namespace).objects
    return {f"{one.kind} {one.namespace}/{one.name}" for one in objects}


def test_an_object_exists_from_its_creation_to_its_end(graph: Graph) -> None:
    cluster = ClusterBuilder()
    begin = cluster.tick()
    claim = cluster.claim("team", "data", "pv-1")
    cluster.request("update", "configmaps", "team", "settings", data="a: 1")
    pod = cluster.pod("team", "train")
    service = cluster.service("other", "scores", "10.96.0.7")
    middle = cluster.tick()
    pod.end()
    service.end()
    deletion = cluster.request("delete", "configmaps", "team", "settings")
    at = cluster.now
    cluster.audit[-1] = Invalidated(
        execution=deletion.maker, n=0, at=at, activity=deletion.maker, version=deletion
    )
    cluster.audit.append(Ended(execution=claim, n=0, at=at, activity=claim, status=0))
    cluster.fold(graph)
    assert names(graph, begin) == set()
    of_team = {"PersistentVolumeClaim team/data", "ConfigMap team/settings", "Pod team/train"}
    assert names(graph, middle) == {*of_team, "Service other/scores"}
    assert names(graph, middle, "team") == of_team
    assert names(graph, at) == set()


def test_what_is_known_of_each(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    cluster.request("update", "configmaps", "team", "settings", data="a: 1", agent="bob")
    cluster.request("update", "configmaps", "team", "settings", data="a: 2", agent="carol")
    owner = Owner(kind="Job", name="train", uid=str(uid_of("x")))
    pod = cluster.pod("team", "train", image="train", owner=owner, node="two")
    service = cluster.service("team", "scores", "10.96.0.7")
    service.add(pod)
    before = cluster.tick()
    cluster.claim("team", "data", "pv-2")
    service.remove(pod)
    after = cluster.tick()
    cluster.fold(graph)

    def find(at: int) -> dict[str, ClusterObject]:
        return {one.kind: one for one in load_cluster_state(graph, at).objects}

    then, now = find(before), find(after)
    assert (then["Pod"].node, then["Pod"].owner, then["Pod"].agent) == ("two", "Job train", "alice")
    assert then["Pod"].images == {"main": image_of("train")}
    assert then["ConfigMap"].agent == "carol"
    assert then["ConfigMap"].digest == digest("a: 2")
    assert (then["Service"].pods, now["Service"].pods) == (("train",), ())
    assert then["PersistentVolumeClaim"].volume == "pv-1"
    assert now["PersistentVolumeClaim"].volume == "pv-2"


def test_it_is_bounded_and_leaves_out_what_may_not_be_read(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ClusterBuilder()
    for namespace in ("a", "b"):
        cluster.pod(namespace, "pod")
        cluster.request("update", "configmaps", namespace, "settings", data="a: 1")
    cluster.fold(graph)
    now = cluster.tick()
    graph.restrict(lambda namespace: namespace == "a")
    assert names(graph, now) == {"Pod a/pod", "ConfigMap a/settings"}
    assert names(graph, now, "b") == set()
    graph.restrict(None)
    assert not load_cluster_state(graph, now).truncated
    monkeypatch.setattr(cluster_state, "MAX_OBJECTS", 3)
    found = load_cluster_state(graph, now)
    assert (len(found.objects), found.truncated) == (3, True)
