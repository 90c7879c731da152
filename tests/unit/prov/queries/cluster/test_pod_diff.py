"""Two Pods compared: by image digest, command, variables, ConfigMap, inputs, and node."""

from tests.unit.prov.cluster.cluster_builder import ClusterBuilder, digest, image_of

from clew.cli.commands.diff import summarize_pods
from clew.prov.graph import Graph
from clew.prov.queries.cluster.pod_diff import diff_pods, is_pod
from clew.prov.queries.targets import Target, resolve_target


def target(graph: Graph, text: str) -> Target:
    found = resolve_target(
        graph, text, machine="m", locate=lambda path: path, digest_of=lambda _: None
    )
    assert is_pod(graph, found)
    return found


def test_a_tag_that_names_another_image_now(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    cluster.node("one", {"cpu": {"model": "old"}})
    cluster.node("two", {"cpu": {"model": "new"}})
    for name, image, node in (("a", "app", "one"), ("b", "app of today", "two")):
        cluster.request("update", "configmaps", "team", "settings", data=f"for: {name}")
        pod = cluster.pod(
            "team", name, image=image, tag="app:1", claims=["data"], node=node,
            command=("train", f"--seed={name}"), environment={"SEED": name, "HOME": "/"},
        )  # fmt: skip
        pod.use("configmap://team/settings").read("data/same", "same").read(f"data/of-{name}", name)
        pod.write("data/model", f"model {name}").end()
    cluster.fold(graph)
    found = diff_pods(graph, target(graph, "pod/team/a"), target(graph, "pod/team/b"))
    (image,) = found.images
    assert (image.a, image.b) == (image_of("app"), image_of("app of today"))
    assert image.name_a == image.name_b == "app:1"
    assert found.command["main"].b == ["train", "--seed=b"]
    assert [*found.environment["main"]] == ["SEED"]
    assert [(d.path, d.a) for d in found.config_maps] == [
        ("configmap://team/settings", digest("for: a"))
    ]
    assert [(d.path, d.kind) for d in found.inputs] == [
        ("pvc://team/data/of-a", "missing"),
        ("pvc://team/data/of-b", "extra"),
    ]
    assert [(d.path, d.kind) for d in found.outputs] == [("pvc://team/data/model", "content")]
    assert found.verdict == "different"
    assert [*found.hardware] == ["cpu.model", "node"]
    told = "\n".join(summarize_pods(found))
    assert image_of("app of today") in told
    same = diff_pods(graph, target(graph, "pod/team/a"), target(graph, "pod/team/a"))
    assert not same.differs
