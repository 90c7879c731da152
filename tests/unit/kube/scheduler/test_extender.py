"""Answers to kube-scheduler."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.kube.scheduler.requests import (
    LABELS,
    ignore,
    make_node,
    make_pod,
    make_request,
    refresh,
)

from clew.errors import UsageError
from clew.kube.scheduler.extender import Extender
from clew.kube.scheduler.metrics import Metrics
from clew.kube.scheduler.scheduling_state import SchedulingState
from clew.kube.scheduler.wire_format import Metadata, Node
from clew.placement.node_labels import COST
from clew.placement.pod_assignments import ASSUMED_SECONDS
from clew.placement.request import COST_MS, LOCATIONS, MAX_MS, SPREAD_MS

NEUTRAL: list[dict[str, str]] = [
    {},
    {"typeOfComponent": "Predict"},
    {"OurLocation": "HOME"},
    {"typeOfComponent": "Predict", "OurLocation": "elsewhere"},
]


class Cluster:
    """An extender that knows some nodes, and a clock that stands still."""

    def __init__(self, *nodes: Node) -> None:
        self.state = SchedulingState(ignore)
        self.state.replace_nodes(nodes)
        refresh(self.state)
        self.metrics = Metrics()
        self.now = 0.0
        self.extender = Extender(self.state, self.metrics, clock=lambda: self.now)

    def filter(self, nodes: Sequence[str], **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.extender.filter(make_request(nodes, **request)))
        return answer

    def prioritize(self, nodes: Sequence[str], **request: Any) -> dict[str, int]:
        answer = json.loads(self.extender.prioritize(make_request(nodes, **request)))
        return {one["Host"]: one["Score"] for one in answer}

    def choose(self, nodes: Sequence[str], **request: Any) -> str:
        scores = self.prioritize(nodes, **request)
        return max(scores, key=scores.__getitem__)

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


def three() -> Cluster:
    return Cluster(
        make_node("near", HOME="1.5ms", WORK=80),
        make_node("mid", HOME=20, WORK=20),
        make_node("far", HOME=100, WORK="2"),
    )


NAMES = ["near", "mid", "far"]


@pytest.mark.parametrize("labels", NEUTRAL)
def test_what_is_not_ours_is_left_to_kube_scheduler(labels: dict[str, str]) -> None:
    cluster = three()
    answer = cluster.filter(NAMES, labels=labels, annotations={MAX_MS: "1"})
    assert answer["NodeNames"] == NAMES
    assert not answer["FailedAndUnresolvableNodes"]
    assert cluster.prioritize(NAMES, labels=labels) == {}
    assert cluster.count(
        "clew_scheduler_requests_total", verb="prioritize", answer="neutral"
    )  # fmt: skip


def test_nodes_without_latencies_are_left_to_kube_scheduler() -> None:
    assert three().prioritize(["new", "newer"]) == {}


def test_the_nearest_node_wins_and_an_unknown_one_does_not() -> None:
    assert three().prioritize([*NAMES, "new"]) == {"near": 10, "mid": 4, "far": 2, "new": 0}


def test_several_locations_count_by_their_shares() -> None:
    cluster = three()
    for shares, best in (("HOME=9,WORK=1", "near"), ("HOME=1,WORK=9", "far"), ("HOME,WORK", "mid")):
        assert cluster.choose(NAMES, annotations={LOCATIONS: shares}) == best


def test_a_limit_leaves_out_nodes_and_says_why() -> None:
    cluster = three()
    answer = cluster.filter([*NAMES, "new"], annotations={MAX_MS: "20"})
    assert answer["NodeNames"] == ["near", "mid"]
    why = "farther from HOME than latency.clew.dev/max-ms 20 (nearest: far with 100 ms)"
    assert answer["FailedAndUnresolvableNodes"] == {"far": why, "new": why}
    nowhere = cluster.filter(["far", "mid"], annotations={MAX_MS: "1"})
    assert not nowhere["NodeNames"]
    assert "(nearest: mid with 20 ms)" in nowhere["FailedAndUnresolvableNodes"]["far"]
    assert cluster.count("clew_scheduler_over_limit_total") == 1


def test_a_pod_waits_until_a_node_comes_within_its_limit() -> None:
    cluster = three()
    asked: dict[str, Any] = {"annotations": {MAX_MS: "5"}}

    def waits() -> list[str]:
        refresh(cluster.state)
        cluster.extender.review_waiting()
        return [wait.message for _, _, wait in cluster.extender.take_waiting()]

    cluster.filter(["mid", "far"], **asked)
    limit = f"no feasible node is within {MAX_MS} 5 of HOME"
    assert waits() == [f"{limit}: 1 are within it, but cannot take the Pod"]
    cluster.filter(["mid", "far"], **asked)
    cluster.state.see_node(make_node("far", HOME=99))
    assert waits() == []  # nothing that matters
    cluster.state.see_node(make_node("far", HOME=4))
    assert waits() == [f"{limit}: 2 are within it, but cannot take the Pod"]
    assert cluster.filter(["mid", "far"], **asked)["NodeNames"] == ["far"]
    assert cluster.extender.end_waiting("u1")
    assert not cluster.extender.end_waiting("u1")


def test_a_pod_that_waits_knows_the_nearest_node() -> None:
    cluster = three()
    cluster.filter(NAMES, annotations={MAX_MS: "1"})
    (_, _, wait), *_ = cluster.extender.take_waiting()
    assert wait.message.endswith("of HOME: the nearest is near with 1.5 ms")
    cluster.extender.forget("u1")
    assert not cluster.extender.end_waiting("u1")


def test_only_the_nearest_of_many_nodes_stay() -> None:
    names = [f"n{i}" for i in range(300)]
    cluster = Cluster(*(make_node(name, HOME=i + 1) for i, name in enumerate(names)))
    answer = cluster.filter(names[::-1])
    assert sorted(answer["NodeNames"]) == sorted(names[:100])


def test_pods_in_flight_count_on_nodes_that_tie() -> None:
    names = ["a", "b", "c"]
    cluster = Cluster(*(make_node(name, HOME=1) for name in names))
    chosen = Counter(cluster.choose(names, uid=f"u{i}") for i in range(9))
    assert chosen == {"a": 3, "b": 3, "c": 3}
    cluster.state.see_pod(make_pod("u0", "a"))
    cluster.now = ASSUMED_SECONDS
    assert cluster.choose(names, uid="last") != "a"  # all others are forgotten


def test_a_pod_that_is_tried_again_counts_once() -> None:
    cluster = three()
    for _ in range(3):
        cluster.prioritize(NAMES)
    assert cluster.state.occupancy.pods_on("near") == 1


def test_the_only_node_is_the_choice_without_scores() -> None:
    cluster = three()
    cluster.filter(["mid"])
    assert cluster.state.occupancy.pods_on("mid") == 1
    said = cluster.extender.take_explanation(make_pod("u1", "mid"))
    assert said is not None
    assert said.message == "on mid, 20 ms from HOME: the only feasible node"


def test_replicas_spread_as_far_as_it_is_worth() -> None:
    request: dict[str, Any] = {"annotations": {SPREAD_MS: "30"}, "owner": "set"}
    cluster = three()
    chosen = [cluster.choose(NAMES, uid=f"u{i}", **request) for i in range(3)]
    assert chosen == ["near", "mid", "near"]  # 1.5; 20 < 31.5; 31.5 < 50
    assert cluster.choose(NAMES, uid="other", annotations=request["annotations"]) == "near"


def test_a_cheaper_node_wins_if_that_is_worth_it() -> None:
    dear = Node(Metadata(name="dear", labels={"HOME": "1"}, annotations={COST: "10"}))
    cluster = Cluster(dear, make_node("cheap", HOME=6))
    assert cluster.choose(["dear", "cheap"]) == "dear"
    assert cluster.choose(["dear", "cheap"], annotations={COST_MS: "1"}) == "cheap"


def test_the_reason_is_told_once_the_pod_is_bound() -> None:
    cluster = three()
    cluster.filter(NAMES)
    cluster.prioritize(NAMES)
    said = cluster.extender.take_explanation(make_pod("u1", "near"))
    assert said is not None
    assert not said.warning
    assert said.message == (
        "on near, 1.5 ms from HOME: the best of 3 feasible nodes, next mid with 20 ms"
    )
    assert cluster.extender.take_explanation(make_pod("u1", "near")) is None
    assert cluster.count("clew_scheduler_placed_total", location="HOME", node="chosen") == 1


def test_it_is_told_when_kube_scheduler_decided_otherwise() -> None:
    cluster = three()
    cluster.prioritize(NAMES)
    said = cluster.extender.take_explanation(make_pod("u1", "mid"))
    assert said is not None
    assert said.message.startswith("on mid, 20 ms from HOME: near was preferred with 1.5 ms")
    assert cluster.count("clew_scheduler_placed_total", location="HOME", node="other") == 1


@pytest.mark.parametrize(
    ("location", "annotations", "text"),
    [
        ("Mars", {}, "on mid regardless of latency: none to Mars is known"),
        ("HOME", {LOCATIONS: "HOME,Mars"}, "; no latency to Mars is known"),
        ("HOME", {MAX_MS: "soon"}, f"; {MAX_MS}: 'soon' is not a number of milliseconds"),
    ],
)
def test_what_did_not_count_is_a_warning(
    location: str, annotations: dict[str, str], text: str
) -> None:
    cluster = three()
    labels = {**LABELS, "OurLocation": location}
    cluster.prioritize(NAMES, labels=labels, annotations=annotations)
    said = cluster.extender.take_explanation(make_pod("u1", "mid"))
    assert said is not None
    assert said.warning
    assert text in said.message


def test_locations_that_are_not_known_are_no_labels_of_metrics() -> None:
    cluster = three()
    cluster.prioritize(NAMES, labels={**LABELS, "OurLocation": "invented"})
    cluster.prioritize(NAMES, annotations={LOCATIONS: "HOME,invented"})
    cluster.extender.take_explanation(make_pod("u1", "near"))
    assert b"HOME" in cluster.metrics.render()
    assert b"invented" not in cluster.metrics.render()


def test_a_refused_request_is_counted() -> None:
    cluster = three()
    with pytest.raises(UsageError):
        cluster.extender.filter(b"{}")
    assert cluster.count("clew_scheduler_requests_total", verb="filter", answer="refused") == 1
