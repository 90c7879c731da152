"""What agents report becomes what decisions know: their own node, what exists, and for a time."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from tests.unit.kube.scheduler.requests import make_node, refresh

from clew.kube.latency.node_latency import Found, Named, NodeLatency, make_status
from clew.kube.scheduler.latencies.latency_reports import OLDEST_SECONDS, LatencyReports
from clew.kube.scheduler.metrics import Metrics
from clew.kube.scheduler.scheduling_state import SchedulingState
from clew.placement.latency_estimates import Estimate
from clew.placement.latency_table import location, node

NOW = 1_000_000.0
HOME = (("HOME", 1.0),)


class Known:
    """Something predicts HOME for all nodes."""

    def to_location(self, name: str) -> Mapping[str, Estimate]:
        return {one: Estimate(20.0, 0.0, False) for one in "abc"} if name == "HOME" else {}


class Scheduler:
    def __init__(self) -> None:
        self.metrics = Metrics()
        self.state = SchedulingState(self.metrics.compare_prediction)
        self.reports = LatencyReports(self.state, self.metrics)
        self.reports.set_locations({"HOME", "EDGE"}, now=NOW)
        self.state.replace_nodes([make_node("a"), make_node("b")])

    def expected(self) -> Mapping[str, float]:
        refresh(self.state)
        return self.state.expect(HOME).mean_ms

    def measured(self, name: str, to: str = "HOME") -> float | None:
        found = self.state.table.measurement(node(name), location(to))
        return found.ms if found else None

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"clew_scheduler_{name}", labels)


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


def make_report(
    name: str,
    *,
    at: float = NOW,
    nodes: Mapping[str, float] | None = None,
    unreachable: Sequence[str] = (),
    **locations: float,
) -> NodeLatency:
    def found(of: Mapping[str, float]) -> list[Found]:
        return [Found(to, ms, datetime.fromtimestamp(at, UTC)) for to, ms in of.items()]

    return make_raw(name, make_status(found(locations), found(nodes or {}), unreachable)["status"])


def make_raw(name: str, status: Any) -> NodeLatency:
    return NodeLatency(Named(name), status=msgspec.Raw(json.dumps(status).encode()))


def test_a_report_counts(scheduler: Scheduler) -> None:
    scheduler.reports.see(make_report("a", HOME=5, nodes={"b": 1}), now=NOW)
    assert scheduler.expected() == {"a": 5}
    assert scheduler.state.table.measurement(node("a"), node("b")) is not None


def test_what_is_no_longer_reported_is_forgotten(scheduler: Scheduler) -> None:
    scheduler.reports.see(make_report("a", HOME=5, EDGE=7), now=NOW)
    scheduler.reports.see(make_report("a", EDGE=7), now=NOW)
    assert (scheduler.measured("a"), scheduler.measured("a", "EDGE")) == (None, 7)
    scheduler.reports.replace([make_report("b", HOME=9)], now=NOW)
    assert scheduler.measured("a", "EDGE") is None
    assert scheduler.expected() == {"b": 9}


def test_only_what_exists_and_is_plausible_counts(scheduler: Scheduler) -> None:
    scheduler.reports.see(
        make_report("a", HOME=1e9, EDGE=0.0, MOON=1, nodes={"a": 1, "other": 1}), now=NOW
    )
    scheduler.reports.see(make_report("unknown", HOME=1), now=NOW)
    assert len(scheduler.state.table) == 0
    assert scheduler.value("refused_reports_total") == 3  # the others may only be unknown yet


@pytest.mark.parametrize(
    "status", [[], {"locations": 5}, {"locations": [{"name": "HOME", "ms": "5"}]}, "text"]
)
def test_a_report_of_another_form_counts_as_empty(scheduler: Scheduler, status: Any) -> None:
    scheduler.reports.see(make_report("a", HOME=5), now=NOW)
    scheduler.reports.see(make_raw("a", status), now=NOW)
    assert scheduler.measured("a") is None
    assert scheduler.value("refused_reports_total") == 1


def test_a_node_or_location_that_appears_later_gets_its_report(scheduler: Scheduler) -> None:
    scheduler.reports.see(make_report("c", HOME=5, MOON=8), now=NOW)
    scheduler.state.see_node(make_node("c"))
    scheduler.reports.apply("c", now=NOW)
    assert scheduler.measured("c") == 5
    scheduler.reports.set_locations({"MOON"}, now=NOW)
    assert (scheduler.measured("c"), scheduler.measured("c", "MOON")) == (None, 8)


def test_labels_count_instead_of_reports_as_long_as_they_are_there(scheduler: Scheduler) -> None:
    scheduler.state.see_node(make_node("a", HOME=3))
    scheduler.reports.see(make_report("a", HOME=5), now=NOW)
    assert scheduler.measured("a") == 3
    scheduler.reports.see(make_report("a"), now=NOW)
    assert scheduler.measured("a") == 3
    scheduler.reports.see(make_report("a", HOME=5), now=NOW)
    scheduler.state.see_node(make_node("a"))
    scheduler.reports.apply("a", now=NOW)
    assert scheduler.measured("a") == 5


def test_old_reports_stop_counting(scheduler: Scheduler) -> None:
    scheduler.reports.see(make_report("a", HOME=5), now=NOW)
    assert scheduler.reports.oldest_age(now=NOW + 60) == 60
    for _ in range(200):
        scheduler.reports.apply_some(now=NOW + OLDEST_SECONDS + 1)
    assert scheduler.measured("a") is None
    assert scheduler.reports.oldest_age(now=NOW + OLDEST_SECONDS + 1) == 0


def test_a_clock_may_be_somewhat_ahead(scheduler: Scheduler) -> None:
    scheduler.reports.see(make_report("a", at=NOW + 200, HOME=5), now=NOW)
    scheduler.reports.see(make_report("a", at=NOW + 1, HOME=6), now=NOW + 1)
    assert scheduler.measured("a") == 6
    scheduler.reports.see(make_report("a", at=NOW + 1e6, HOME=7), now=NOW + 2)
    assert scheduler.measured("a") is None


def test_predictions_fill_in_what_is_reachable(scheduler: Scheduler) -> None:
    scheduler.reports.see(make_report("a", HOME=5), now=NOW)
    assert scheduler.expected() == {"a": 5}
    scheduler.state.predict(Known())
    assert scheduler.expected() == {"a": 5, "b": 20, "c": 20}
    scheduler.reports.see(make_report("b", unreachable=["HOME"]), now=NOW)
    assert scheduler.expected() == {"a": 5, "c": 20}
    scheduler.reports.forget("b")
    assert scheduler.expected() == {"a": 5, "b": 20, "c": 20}


def test_first_measurements_are_compared_with_predictions(scheduler: Scheduler) -> None:
    scheduler.state.predict(Known())
    for ms in (25, 30):
        scheduler.reports.see(make_report("a", HOME=ms), now=NOW)
    assert scheduler.value("prediction_relative_error_count") == 1
    assert scheduler.value("prediction_relative_error_sum") == pytest.approx(0.2)
    assert scheduler.value("compared_ms_total", source="predicted") == 20
    assert scheduler.value("compared_ms_total", source="measured") == 25
