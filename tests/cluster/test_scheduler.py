"""`clew scheduler` with a real kube-scheduler, on nodes that kwok plays."""

import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.cluster.concurrency import OWN_CLUSTER
from tests.cluster.schedulers import (  # fixtures among them
    DEPLOY,
    Api,
    Pair,
    api,
    assign,
    empty,
    make_map,
    make_pod,
    pair,
    scheduling,
)
from tests.local.test_docs import DOCS, holds
from tests.wait import wait_until
from tools.cluster.binaries import program_directory

__all__ = ["api", "empty", "pair"]
pytestmark = [pytest.mark.cluster, OWN_CLUSTER]

PAGE = DOCS / "how-to" / "place-predictions-near-users.md"

# Table 3 of the thesis that introduced the labels, its last two rows as they were measured.
TABLE = {
    "cloud": {"Cloud": "0.289ms", "NITLab": "2.669", "Home": "41.966"},
    "edge-nitlab": {"Cloud": "2.7", "NITLab": "0.306", "Home": "42.551"},
    "edge-home": {"Cloud": "41.9", "NITLab": "42.551", "Home": "9.8ms"},
}


def test_three_locations_get_three_placements(api: Api, pair: Pair) -> None:
    api.add_nodes(TABLE)
    pair.await_latencies(9)
    api.add_pods(make_pod("a", "Cloud"), make_pod("b", "NITLab"), make_pod("c", "Home"))
    assert api.wait_for_placements(3) == {"a": "cloud", "b": "edge-nitlab", "c": "edge-home"}
    said = api.event("b", "PlacedByLatency")["message"]
    assert "on edge-nitlab, 0.306 ms from NITLab" in said
    assert "best of 3 feasible nodes, next cloud with 2.669 ms" in said


def test_the_page_is_true(api: Api, pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "deploy").symlink_to(DEPLOY.parent)
    api.add_nodes({"edge-1": {}, "cloud-1": {}})
    programs = (str(program_directory("kubectl")), str(Path(sys.executable).parent))
    path = ":".join((*programs, os.environ["PATH"]))
    environment = {"PATH": path, "KUBECONFIG": str(api.kubeconfig), "LC_ALL": "C.UTF-8"}
    holds(PAGE, tmp_path / "page", {**os.environ, **environment})


@pytest.mark.parametrize("count", [10, 100, 1000, pytest.param(5000, marks=pytest.mark.heavy)])
def test_every_pod_is_on_the_nearest_of_many_nodes(api: Api, pair: Pair, count: int) -> None:
    """kube-scheduler looks at a part of many nodes only, unless it is told otherwise."""
    known = make_map(count, locations=10)
    api.add_nodes(known)
    pair.await_latencies(count * 10)
    api.add_pods(*(make_pod(f"p{n}", f"L{n % 10}") for n in range(30)))
    for pod, node in api.wait_for_placements(30).items():
        location = f"L{int(pod[1:]) % 10}"
        best = min(of[location] for of in known.values())
        assert known[node][location] <= best * 1.01 + 0.02


def test_competing_pods_are_nearly_as_near_as_any_assignment_could_have_them(
    api: Api, pair: Pair
) -> None:
    room, locations = 3, 8
    known = make_map(120, locations)
    wanted = [f"L{n % locations}" for n in range(300)]
    api.add_nodes(known, pods=str(room))
    pair.await_latencies(120 * locations)
    api.add_pods(*(make_pod(f"p{n}", location) for n, location in enumerate(wanted)))
    placed = api.wait_for_placements(len(wanted))
    assert max(Counter(placed.values()).values()) <= room
    total = sum(known[node][wanted[int(pod[1:])]] for pod, node in placed.items())
    assert total <= 1.15 * assign(known, wanted, room)


def test_a_node_whose_latency_is_only_predicted_wins_if_it_is_clearly_nearer(
    api: Api, pair: Pair, tmp_path: Path
) -> None:
    known = make_map(200, locations=10)
    near = [name for name, of in known.items() if of["L0"] < 25]
    measured = {
        name: {to: ms for to, ms in of.items() if to != "L0" or name not in near}
        for name, of in known.items()
    }
    api.add_nodes(measured)
    names = iter(f"p{n}" for n in range(1000))

    def place() -> str:
        name = next(names)
        api.add_pods(make_pod(name, "L0", scheduler="predicting"))
        wait_until(f"{name} has a node", lambda: api.placements().get(name))
        message = str(api.event(name, "PlacedByLatency")["message"])
        return message if "(predicted)" in message.partition(":")[0] else ""

    # An extender of its own: another may still predict for the nodes of the test before.
    with scheduling(tmp_path, api.kubeconfig, name="predicting") as own:
        own.await_latencies(2000 - len(near))
        said = wait_until("a prediction counts", place)
    assert any(said.startswith(f"on {name},") for name in near)


def test_replicas_spread_and_other_pods_do_not(api: Api, pair: Pair) -> None:
    api.add_nodes({"near": {"HOME": 1}, "mid": {"HOME": 3}, "far": {"HOME": 50}})
    pair.await_latencies(3)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1"}
    replica = {
        "annotations": {"latency.clew.dev/spread-ms": "10"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    api.add_pods(*(make_pod(f"r{n}", "HOME", **replica) for n in range(4)))
    assert sorted(api.wait_for_placements(4).values()) == ["mid", "mid", "near", "near"]
    api.add_pods(*(make_pod(f"p{n}", "HOME") for n in range(3)))
    placed = api.wait_for_placements(7)
    assert {node for name, node in placed.items() if name.startswith("p")} == {"near"}


def test_ordinary_pods_are_left_alone(api: Api, pair: Pair) -> None:
    api.add_nodes(TABLE)
    pair.await_latencies(9)
    before = pair.extender.metrics()
    pods = [make_pod("plain"), make_pod("lost", "Mars"), make_pod("train", "Home")]
    pods[2]["metadata"]["labels"]["typeOfComponent"] = "Train"
    api.add_pods(*pods)
    api.wait_for_placements(3)
    said = api.event("lost", "PlacedWithReservations")["message"]
    assert "regardless of latency: none to Mars is known" in said
    events = api.get("/api/v1/namespaces/default/events")["items"]
    ours = [e for e in events if e["source"].get("component") == "clew-scheduler"]
    named = {e["involvedObject"]["name"] for e in ours if e["involvedObject"]["uid"] in api.uids()}
    assert named == {"lost"}
    after = pair.extender.metrics()
    decided = 'clew_scheduler_requests_total{answer="decided",verb="prioritize"}'
    neutral = 'clew_scheduler_requests_total{answer="neutral",verb="prioritize"}'
    assert after.get(decided) == before.get(decided)
    assert after[neutral] - before.get(neutral, 0) == 3


def test_with_a_small_weight_an_empty_node_wins(api: Api, pair: Pair, tmp_path: Path) -> None:
    with scheduling(tmp_path, api.kubeconfig, name="balanced", weight=1) as balanced:
        api.add_nodes({"near": {"HOME": 1}, "far": {"HOME": 2}}, cpu="1")
        pair.await_latencies(2)
        balanced.await_latencies(2)
        full = make_pod("full", cpu="800m")
        full["spec"]["nodeName"] = "near"
        api.add_pods(full)
        wait_until("it runs", lambda: api.pods()["full"]["status"]["phase"] == "Running")
        api.add_pods(make_pod("balanced", "HOME", scheduler="balanced"), make_pod("p", "HOME"))
        placed = api.wait_for_placements(3)
        assert placed["p"] == "near"
        assert placed["balanced"] == "far"
        said = api.event("balanced", "PlacedByLatency")["message"]
        assert "near was preferred with 1 ms, but other criteria" in said
