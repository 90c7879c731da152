"""The lineage of a cluster as PROV, read back by the `prov` package."""

import io

from prov.model import ProvAgent, ProvAssociation, ProvDocument
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder, machine_learning

from clew.prov.export.lineage import export_lineage
from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage_graph import Request
from clew.prov.queries.targets import resolve_target


def test_what_is_of_a_cluster_is_exported_and_what_is_inferred_is_marked(graph: Graph) -> None:
    cluster = ClusterBuilder()
    robot = "system:serviceaccount:team:robot"
    cluster.request("update", "configmaps", "team", "settings", data="a: 1", agent=robot)
    machine_learning(cluster, watched=False)
    pod = cluster.pod("team", "late", claims=["data"]).use("configmap://team/settings")
    pod.read("data/found", "found").write("data/late", "1").end()
    cluster.fold(graph)
    target = resolve_target(
        graph, "pvc://team/data/late", machine="m", locate=lambda p: p, digest_of=lambda _: None
    )
    request = Request(direction="up", depth=None)
    for as_json in (True, False):
        raw = export_lineage(graph, target, request, lambda _: None, as_json=as_json).decode()
        if as_json:
            document = ProvDocument.deserialize(io.StringIO(raw), format="json")
            labels = {agent.label for agent in document.get_records(ProvAgent)}
            assert labels == {"alice", "system:serviceaccount:team:robot"}
            names = {
                str(agent.identifier): agent.label for agent in document.get_records(ProvAgent)
            }
            by = {}
            for relation in document.get_records(ProvAssociation):
                activity, agent = (str(value) for _, value in relation.formal_attributes[:2])
                (found,) = document.get_record(activity)
                by[found.label] = names[agent]
            assert by["pod team/late"] == by["pod team/train"] == "alice"
            assert by["update configmaps team/settings by system:serviceaccount:team:robot"] == (
                "system:serviceaccount:team:robot"
            )
        assert "clew:agent=" not in raw
        for word in ("clew:Container", "clew:Request", "clew:Volume", "clew:SameVolume"):
            assert word in raw, word
        assert "team/train" in raw
        assert "clew:observed" in raw
