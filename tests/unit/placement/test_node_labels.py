"""Latencies and costs on nodes."""

from hypothesis import given
from hypothesis import strategies as st

from clew.placement.latency_estimates import MeasuredEstimates
from clew.placement.latency_table import LatencyTable, location, node
from clew.placement.node_labels import COST, parse_cost, parse_latencies, record_latencies

YEAR = 365 * 86_400.0


def test_labels_with_numbers_are_latencies() -> None:
    labels = {
        "HOME": "0.8ms",
        "NITLab": "42.551",
        "here": "0",
        "role": "edge",
        "kubernetes.io/hostname": "12",
        "far": "99999999",
    }
    assert parse_latencies(labels) == {"HOME": 0.8, "NITLab": 42.551, "here": 0.001}


def test_a_label_counts_instead_of_a_measurement_and_does_not_age() -> None:
    table = LatencyTable()
    table.record(node("n"), location("HOME"), 5, at=100, deviation_ms=1)
    record_latencies(table, "n", {"HOME": "3"})
    assert not table.record(node("n"), location("HOME"), 7, at=200)
    estimate = MeasuredEstimates(table, now=YEAR).to_location("HOME")["n"]
    assert (estimate.ms, estimate.error_ms) == (3, 0)


labels = st.dictionaries(
    st.sampled_from(["HOME", "CLOUD", "role", "a/b"]), st.sampled_from(["1", "2ms", "edge"])
)


@given(st.lists(labels))
def test_the_latest_labels_count(history: list[dict[str, str]]) -> None:
    table = LatencyTable()
    table.record(node("n"), location("measured"), 9, at=1)
    for found in history:
        record_latencies(table, "n", found)
        entered = {end.name: m.ms for end, m in table.measurements_to(node("n")).items()}
        assert entered == {"measured": 9, **parse_latencies(found)}


def test_the_cost_of_a_node_is_an_annotation_or_a_label() -> None:
    assert parse_cost({COST: "2"}, {}) == 2
    assert parse_cost({COST: "2"}, {COST: "0.5"}) == 0.5
    assert parse_cost({COST: "much"}, {}) == parse_cost({}, {}) == 0
