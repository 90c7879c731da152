"""Who goes to a volume that one node alone can hold."""

from tests.unit.kube.sample_resources import claim, cluster_state, of_kind, pod, tensorboard, viewer

from clew.kube.controller.model import ClusterState
from clew.kube.controller.options import Options
from clew.kube.objects import Json
from clew.kube.resources import tensorboards, viewers
from clew.kube.resources.node_affinity import FOLLOWS_LABEL, follower_rank, require_node

BOARD = tensorboard("pvc://data/logs")
RWO = claim("data", "ReadWriteOnce")


def required(around: ClusterState, board: Json = BOARD) -> str | None:
    made = tensorboards.decide(board, around, Options()).children
    affinity = of_kind(made, "Deployment")["spec"]["template"]["spec"].get("affinity")
    if affinity is None:
        return None
    rules = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    [term] = rules["nodeSelectorTerms"]
    [field] = term["matchFields"]
    assert (field["key"], field["operator"]) == ("metadata.name", "In")
    [node] = field["values"]
    return str(node)


def holders(*pods: Json) -> dict[str, list[Json]]:
    return {"data": list(pods)}


def test_it_is_required_where_the_volume_is_held() -> None:
    around = cluster_state(claims=RWO, holders=holders(pod("first-0", "b", "data")))
    assert required(around) == "b"


def test_it_follows_the_one_that_stays() -> None:
    leaving = pod("old", "a", "data", metadata={"deletionTimestamp": "x"})
    around = cluster_state(
        claims=RWO, holders=holders(leaving, pod("new", "b", "data", phase="Pending"))
    )
    assert required(around) == "b"
    assert required(cluster_state(claims=RWO, holders=holders(leaving))) == "a", "it still holds it"


def test_it_is_free_when_nobody_holds_the_volume() -> None:
    done = pod("done", "a", "data", phase="Succeeded")
    unplaced = pod("unplaced", None, "data", phase="Pending")
    assert required(cluster_state(claims=RWO, holders=holders(done, unplaced))) is None
    assert required(cluster_state(claims=RWO)) is None
    assert required(cluster_state()) is None


def test_it_is_free_where_many_nodes_may_hold_it() -> None:
    around = cluster_state(
        claims=claim("data", "ReadWriteOnce", "ReadWriteMany"),
        holders=holders(pod("first-0", "b", "data")),
    )
    assert required(around) is None


def test_it_does_not_follow_itself() -> None:
    own = pod("curves-1", "a", "data", metadata={"labels": {FOLLOWS_LABEL: follower_rank(BOARD)}})
    assert required(cluster_state(claims=RWO, holders=holders(own))) is None


def test_of_two_that_follow_the_younger_does() -> None:
    files = viewer("data")
    of_board = pod(
        "curves-1", "a", "data", metadata={"labels": {FOLLOWS_LABEL: follower_rank(BOARD)}}
    )
    of_files = pod(
        "files-1", "b", "data", metadata={"labels": {FOLLOWS_LABEL: follower_rank(files)}}
    )
    around = cluster_state(claims=RWO, holders=holders(of_board, of_files))
    assert required(around) is None
    made = of_kind(viewers.decide(files, around, Options()).children, "Deployment")
    assert "affinity" in made["spec"]["template"]["spec"]


def test_a_pod_that_does_not_follow_decides() -> None:
    older = tensorboard("pvc://data", "older", creationTimestamp="2026-01-01T00:00:00Z")
    of_older = pod(
        "older-1", "a", "data", metadata={"labels": {FOLLOWS_LABEL: follower_rank(older)}}
    )
    around = cluster_state(claims=RWO, holders=holders(of_older, pod("first-0", "b", "data")))
    assert required(around) == "b"
    assert required(around, older) == "b"


def test_what_was_demanded_before_stays_demanded() -> None:
    ssd = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    gpu = {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}
    given = {
        "podAffinity": {"x": 1},
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ssd, gpu]}
        },
    }
    made = require_node("b", given)
    terms = made["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    assert terms["nodeSelectorTerms"] == [
        {**ssd, "matchFields": [field]},
        {**gpu, "matchFields": [field]},
    ]
    assert made["podAffinity"] == {"x": 1}
