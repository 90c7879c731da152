"""Lineage of a cluster: which write a read saw, by digest, by time, and by volume."""

from typing import Literal

import pytest
from msgspec import UNSET
from tests.unit.prov.cluster.cluster_builder import (
    SECOND,
    START,
    ClusterBuilder,
    image_of,
    machine_learning,
    uid_of,
)
from tests.unit.prov.execution_builder import ExecutionBuilder

from clew.documents.ids import Locator
from clew.documents.lineage.lineage import Edge, Lineage
from clew.errors import ClewError, NotFound
from clew.prov.cluster.facets import Owner
from clew.prov.events import Alias
from clew.prov.graph import Graph
from clew.prov.queries.cluster import connections
from clew.prov.queries.lineage.lineage import trace_lineage
from clew.prov.queries.targets import resolve_target


def trace(
    graph: Graph, text: str, direction: Literal["up", "down"] = "up", as_of: int | None = None
) -> Lineage:
    target = resolve_target(
        graph, text, machine="m", locate=lambda path: path, digest_of=lambda _: None, as_of=as_of
    )
    return trace_lineage(graph, target, direction=direction, as_of=as_of)


def labels(lineage: Lineage) -> set[str]:
    return {node.label for node in lineage.nodes}


def pods(lineage: Lineage) -> set[str]:
    return {node.pod.rpartition("/")[2] for node in lineage.nodes if node.pod}


def edges(lineage: Lineage, *, inferred: bool) -> list[Edge]:
    return [edge for edge in lineage.edges if bool(edge.inferred) == inferred]


def test_a_pod_says_what_created_it(graph: Graph) -> None:
    cluster = ClusterBuilder()
    owner = Owner(kind="TFJob", name="mnist", uid=str(uid_of("x")))
    pod = cluster.pod("team", "mnist-worker-0", image="train", owner=owner)
    pod.write("pvc://team/data/model", "m1")
    cluster.pod("team", "alone", image="train")
    cluster.fold(graph)
    for target in ("pvc://team/data/model", "pod/team/mnist-worker-0"):
        found = {node.pod: node.owner for node in trace(graph, target).nodes if node.pod}
        assert found == {"team/mnist-worker-0": "TFJob mnist"}
    alone = {node.owner for node in trace(graph, "pod/team/alone").nodes if node.pod}
    assert alone == {UNSET}


def test_with_watched_files_the_other_preprocessor_is_no_ancestor(graph: Graph) -> None:
    cluster = ClusterBuilder()
    machine_learning(cluster)
    cluster.fold(graph)
    found = trace(graph, "pvc://team/data/metrics.json")
    assert pods(found) == {"ingest", "clean", "train", "evaluate"}
    assert "s3://lake/raw.csv" in labels(found)
    assert "pvc://team/data/clean.csv" in labels(found)
    assert not edges(found, inferred=True)
    evaluate = next(node for node in found.nodes if node.label == "pod team/evaluate")
    assert (evaluate.image, evaluate.command, evaluate.namespace) == (
        "evaluate:1",
        ("run",),
        "team",
    )


def test_with_the_audit_witness_alone_it_is_one(graph: Graph) -> None:
    cluster = ClusterBuilder()
    machine_learning(cluster)
    cluster.fold(graph, files=False)
    found = trace(graph, "pvc://team/data/metrics.json")
    assert pods(found) == {"ingest", "clean", "other", "train", "evaluate"}
    assert {edge.how for edge in edges(found, inferred=True)} == {"mount"}


def test_what_is_traced_up_is_traced_down(graph: Graph) -> None:
    cluster = ClusterBuilder()
    machine_learning(cluster)
    cluster.fold(graph)
    assert pods(trace(graph, "s3://lake/raw.csv", "down")) == {
        "ingest",
        "clean",
        "train",
        "evaluate",
    }
    assert pods(trace(graph, "s3://lake/other.csv", "down")) == {"other"}
    assert pods(trace(graph, "pod/team/other", "down")) == {"other"}
    assert pods(trace(graph, f"image@{image_of('train')}", "down")) == {"train", "evaluate"}


def test_what_ran_before_was_not_made_from_what_came_later(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    cluster.request("create", "configmaps", "other", "same", data="depth: 1")
    cluster.request("create", "configmaps", "team", "settings", data="depth: 1")
    cluster.pod("team", "before", claims=["data"], watched=False).end()
    cluster.pod("team", "uses", claims=["data"], watched=False).use(
        "configmap://team/settings"
    ).end()
    cluster.pod("team", "after", claims=["data"], watched=False).end()
    cluster.fold(graph)
    found = trace(graph, "configmap/team/settings", "down")
    assert pods(found) == {"uses", "after"}
    above = trace(graph, "configmap/team/settings")
    assert not any("other/same" in label for label in labels(above))


def test_without_digests_the_last_writing_counts_and_is_inferred(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    cluster.pod("team", "first", claims=["data"]).write("data/x").end()
    cluster.pod("team", "second", claims=["data"]).write("data/x").end()
    reader = cluster.pod("team", "reader", claims=["data"]).read("data/x")
    cluster.pod("team", "third", claims=["data"]).write("data/x").end()
    reader.write("data/y").end()
    cluster.fold(graph)
    found = trace(graph, "pvc://team/data/y")
    assert pods(found) == {"second", "reader"}
    assert [edge.kind for edge in edges(found, inferred=True)] == ["used"]
    assert pods(trace(graph, "pod/team/second", "down")) == {"second", "reader"}
    assert pods(trace(graph, "pod/team/first", "down")) == {"first"}


def test_a_file_without_a_known_writer_is_of_the_unwatched(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    cluster.pod("team", "unseen", claims=["data"], watched=False).end()
    cluster.pod("team", "seen", claims=["data"]).write("data/other", "other").end()
    cluster.pod("team", "cannot-write", read_only=["data"], watched=False).end()
    cluster.pod("team", "reader", claims=["data"]).read("data/x", "x").write("data/y", "y").end()
    cluster.pod("team", "late", claims=["data"], watched=False).end()
    cluster.fold(graph)
    found = trace(graph, "pvc://team/data/y")
    assert pods(found) == {"unseen", "reader"}
    assert {edge.kind for edge in edges(found, inferred=True)} == {"same_volume", "generated"}
    # and no witness saw who else read what a Pod wrote there
    assert pods(trace(graph, "pod/team/unseen", "down")) == {
        "unseen",
        "cannot-write",
        "reader",
        "late",
    }


def test_a_watched_container_that_read_nothing_has_no_ancestors(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    cluster.pod("team", "before", claims=["data"]).write("data/x", "x").end()
    cluster.pod("team", "alone", claims=["data"]).write("data/y", "y").end()
    cluster.fold(graph)
    assert pods(trace(graph, "pvc://team/data/y")) == {"alone"}


def test_a_container_is_watched_only_if_nothing_was_lost_until_its_end(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    cluster.pod("team", "before", claims=["data"]).write("data/x", "x").end()
    cluster.pod("team", "seen", claims=["data"]).write("data/seen", "1").end()
    cluster.pod("team", "lost", claims=["data"]).lose("data").write("data/lost", "2").end()
    cluster.pod("team", "left", claims=["data"]).write("data/left", "3").end(seen=False)
    cluster.pod("team", "reader", claims=["data"]).read("data/y", "y").write("data/z", "z")
    cluster.fold(graph)
    assert pods(trace(graph, "pvc://team/data/seen")) == {"seen"}
    for name, earlier in (("lost", {"seen"}), ("left", {"seen", "lost"})):
        found = trace(graph, f"pvc://team/data/{name}")
        assert pods(found) >= {name, "before", *earlier}
        assert edges(found, inferred=True)
    # either may have made what no witness saw being made
    assert pods(trace(graph, "pvc://team/data/z")) >= {"reader", "lost", "left"}


def test_a_claim_that_was_made_again_is_another_volume(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    cluster.pod("team", "old", claims=["data"], watched=False).end()
    between = cluster.tick()
    cluster.claim("team", "data", "pv-2")
    cluster.pod("team", "new", claims=["data"], watched=False).end()
    cluster.fold(graph)
    assert pods(trace(graph, "pvc://team/data")) == {"new"}
    assert pods(trace(graph, "pvc://team/data/any", as_of=between)) == {"old"}
    assert pods(trace(graph, "pvc://team/data@pv-1")) == {"old"}


def test_names_mean_what_they_meant_then(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.request("create", "configmaps", "team", "settings", data="depth: 1")
    first = cluster.pod("team", "serve", address="10.0.0.7", command=("old",))
    first.use("configmap://team/settings", "depth: 1").end()
    then = cluster.tick()
    cluster.request("update", "configmaps", "team", "settings", data="depth: 2", agent="bob")
    second = cluster.pod("team", "serve", address="10.0.0.7", command=("new",), incarnation=1)
    second.use("configmap://team/settings").end()
    cluster.fold(graph)
    for text in ("pod/team/serve", "ip://10.0.0.7"):
        now, before = trace(graph, text), trace(graph, text, as_of=then - SECOND)
        assert [n.command for n in now.nodes if n.pod and n.command] == [("new",)]
        assert [n.command for n in before.nodes if n.pod and n.command] == [("old",)]
        assert "update configmaps team/settings by bob" in labels(now)
        assert "create configmaps team/settings by alice" in labels(before)
    with pytest.raises(NotFound):  # no Pod has it any more
        trace(graph, "ip://10.0.0.7", as_of=cluster.tick())
    used = trace(graph, "configmap/team/settings", "down", as_of=then)
    assert [n.command for n in used.nodes if n.pod] == [("old",)]
    impact = trace(graph, "configmap/team/settings", "down")
    assert {n.command for n in impact.nodes if n.pod} == {("old",), ("new",)}


def test_short_pods_whose_times_are_whole_seconds(graph: Graph) -> None:
    """Kubernetes tells the second in which a container started, and that is recorded as its end."""
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    for name in ("one", "two"):
        pod = cluster.pod("team", name, claims=["data"], watched=False)
        cluster.now = pod.started - SECOND // 2
        pod.write(f"data/{name}", name)
    cluster.fold(graph)
    found = trace(graph, "pvc://team/data/two")
    assert pods(found) == {"one", "two"}
    assert f"image://{image_of('app')}" in labels(found)
    assert pods(trace(graph, f"image@{image_of('app')}", "down")) == {"one", "two"}


@pytest.mark.parametrize(
    "text",
    [
        "pvc://team/data/*", "pvc://team/data/%", "pvc://team/data/_", "pvc://team/%/x",
        "pvc://team/data/' OR 1=1 --", "pvc://team", "pvc:///", "pvc://team/data/\\%25",
        "s3://lake/%", "s3://lake/raw.csv?versionId=%", "pod://team/%", "pkg:deb/%", "pkg:",
        "image@sha256:" + "0" * 64, "ip://10.0.0.%", "ip://", "configmap://team/_",
    ],
)  # fmt: skip
def test_a_name_is_never_a_pattern(graph: Graph, text: str) -> None:
    cluster = ClusterBuilder()
    machine_learning(cluster)
    cluster.fold(graph)
    with pytest.raises(ClewError):
        trace(graph, text)


def test_a_record_of_another_party_does_not_make_what_pods_read(graph: Graph) -> None:
    cluster = ClusterBuilder()
    machine_learning(cluster)
    cluster.fold(graph)
    for text in ("clean", None):  # with and without a digest
        lie = ExecutionBuilder("f" if text else "d", at=START, command=("lie",))
        lie.write(lie.process("lie"), "pvc://team/data@pv-1/clean.csv", text)
        lie.alias("pvc://team/data", "pvc://team/data@pv-lie")
        graph.import_events(lie.end().events)
    found = trace(graph, "pvc://team/data/metrics.json")
    assert pods(found) == {"ingest", "clean", "train", "evaluate"}
    assert not any(node.made_elsewhere for node in found.nodes)


def test_aliases_and_files_in_a_circle_end(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "a", "pv-a")
    cluster.claim("team", "b", "pv-b")
    cluster.audit.append(
        Alias(
            execution=uid_of("claim team/a pv-a"), n=0, at=cluster.tick(),
            a=Locator("pvc://team/a@pv-a"), b=Locator("pvc://team/a"),
        )
    )  # fmt: skip
    every = [cluster.pod("team", f"p{n}", claims=["a", "b"], watched=False) for n in range(4)]
    for pod in every:
        pod.read("a/x").write("b/x").read("b/x").write("a/x")
    for pod in every:
        pod.end()
    cluster.fold(graph)
    for direction in ("up", "down"):
        assert pods(trace(graph, "pod/team/p0", direction)) == {"p0", "p1", "p2", "p3"}


def test_a_pod_depends_on_the_pod_that_it_asked(graph: Graph) -> None:
    cluster = ClusterBuilder()
    early = cluster.pod("team", "early", address="10.0.0.9").read("s3://lake/early", "e").end()
    server = cluster.pod("team", "features", address="10.0.0.9").read("s3://lake/features", "f")
    client = cluster.pod("team", "predict").read("ip://10.0.0.9", how="connect")
    server.read("s3://lake/later", "late")
    client.write("s3://lake/out", "1").end()
    server.end()
    late = cluster.pod("team", "late", address="10.0.0.9").read("s3://lake/late", "l").end()
    cluster.fold(graph)
    found = trace(graph, "s3://lake/out")
    assert pods(found) == {"features", "predict"}
    assert "s3://lake/features" in labels(found)
    (edge,) = [edge for edge in found.edges if edge.kind == "informed"]
    assert edge.inferred
    assert edge.via == "network"
    assert pods(trace(graph, "s3://lake/features", "down")) == {"features", "predict"}
    assert pods(trace(graph, "s3://lake/early", "down")) == {early.name}
    assert pods(trace(graph, "s3://lake/late", "down")) == {late.name}


@pytest.mark.parametrize("place", ["ip://10.96.0.7", "service://team/scores"])
def test_a_pod_depends_on_the_pods_behind_the_service_that_it_asked(
    graph: Graph, place: str
) -> None:
    """Those that the Service led to at the time; a node may follow a change some seconds later."""
    cluster = ClusterBuilder()
    service = cluster.service("team", "scores", "10.96.0.7")
    pods_of = {}
    for name in ("gone", "left", "first", "second", "late", "outside"):
        pods_of[name] = cluster.pod("team", name).read(f"s3://lake/{name}", name)
    for name in ("gone", "left", "first", "second"):
        service.add(pods_of[name])
    pods_of["gone"].end()
    service.remove(pods_of["left"])
    service.remove(pods_of["first"])
    service.add(pods_of["first"])  # ready again
    cluster.now += 60 * SECOND
    cluster.pod("team", "client").read(place, how="connect").write("s3://lake/out", "1").end()
    service.add(pods_of["late"])
    cluster.fold(graph)
    found = trace(graph, "s3://lake/out")
    assert pods(found) == {"client", "first", "second"}
    assert {"s3://lake/first", "s3://lake/second"} <= labels(found)
    edges = [edge for edge in found.edges if edge.kind == "informed"]
    assert [(edge.via, edge.inferred) for edge in edges] == [("network", True)] * 2
    for name in pods_of:
        expected = {name, "client"} if name in ("first", "second") else {name}
        assert pods(trace(graph, f"s3://lake/{name}", "down")) == expected


@pytest.mark.parametrize("direction", ["up", "down"])
def test_connections_beyond_the_bound_are_not_left_out_silently(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, direction: Literal["up", "down"]
) -> None:
    cluster = ClusterBuilder()
    server = cluster.pod("team", "server", address="10.0.0.9")
    for name in ("one", "two"):
        cluster.pod("team", name).read("ip://10.0.0.9", how="connect").end()
    server.end()
    cluster.fold(graph)
    target = "pod/team/server" if direction == "down" else "pod/team/one"
    assert not trace(graph, target, direction).truncated
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 1)
    assert trace(graph, target, direction).truncated


def test_an_address_of_a_service_is_used_again(graph: Graph) -> None:
    cluster = ClusterBuilder()
    old = cluster.service("team", "old", "10.96.0.7")
    was = cluster.pod("team", "was").read("s3://lake/was", "w")
    old.add(was)
    before = cluster.pod("team", "before").read("ip://10.96.0.7", how="connect")
    before.write("s3://lake/before", "1").end()
    old.end()
    cluster.pod("team", "between").read("ip://10.96.0.7", how="connect").write("s3://lake/b").end()
    new = cluster.service("team", "new", "10.96.0.7")
    now = cluster.pod("team", "now").read("s3://lake/now", "n")
    new.add(now)
    after = cluster.pod("team", "after").read("ip://10.96.0.7", how="connect")
    after.write("s3://lake/after", "2").end()
    cluster.fold(graph)
    assert pods(trace(graph, "s3://lake/before")) == {"before", "was"}
    assert pods(trace(graph, "s3://lake/b")) == {"between"}
    assert pods(trace(graph, "s3://lake/after")) == {"after", "now"}


def test_many_pods_on_one_claim_have_as_many_edges(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    for number in range(300):
        cluster.pod("team", f"p{number}", claims=["data"], watched=False).end()
    cluster.fold(graph)
    found = trace(graph, "pod/team/p299")
    assert len(pods(found)) == 300
    assert len(found.edges) < 3 * 300
    target = resolve_target(
        graph, "pod/team/p299", machine="m", locate=lambda path: path, digest_of=lambda _: None
    )
    few = trace_lineage(graph, target, limit=50)
    assert few.truncated
    assert len(few.nodes) < 60 + 50


def test_impact_of_a_package_is_what_ran_with_it(graph: Graph) -> None:
    library = "file://m1/usr/lib/libssl.so"
    for name, version in (("a", "3.0.1"), ("b", "3.0.2")):
        laptop = ExecutionBuilder(name, at=START)
        process = laptop.process("sign", name)
        laptop.read(process, library, version, package=f"pkg:deb/debian/openssl@{version}?arch=x")
        laptop.write(process, f"/w/{name}.sig", name)
        graph.fold(laptop.end().events)
    assert {"/w/a.sig", "/w/b.sig"} <= labels(trace(graph, "pkg:deb/debian/openssl", "down"))
    found = labels(trace(graph, "pkg:deb/debian/openssl@3.0.1", "down"))
    assert "/w/a.sig" in found
    assert "/w/b.sig" not in found
    with pytest.raises(NotFound):
        trace(graph, "pkg:deb/debian/openss", "down")
