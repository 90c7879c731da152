"""The table of measured latencies."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.placement.latency_estimates import Estimate, MeasuredEstimates
from clew.placement.latency_table import Endpoint, LatencyTable, Measurement, location, node

ENDS = [*map(node, "abc"), *map(location, "abc")]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(ENDS),
            st.sampled_from(ENDS),
            st.floats(0.001, 10_000),
            st.integers(0, 9),
        )
    )
)
def test_the_latest_measurement_of_a_pair_counts_in_both_directions(
    records: list[tuple[Endpoint, Endpoint, float, int]],
) -> None:
    table = LatencyTable()
    expected: dict[frozenset[Endpoint], Measurement] = {}
    for a, b, ms, at in records:
        known = expected.get(frozenset((a, b)))
        accepted = a != b and (known is None or at >= known.at)
        assert table.record(a, b, ms, at=at) == accepted
        if accepted:
            expected[frozenset((a, b))] = Measurement(ms, at, 0.0)
    assert {frozenset((a, b)): measurement for a, b, measurement in table.pairs()} == expected
    assert len(table) == len(expected)
    assert all(table.measurement(a, b) == table.measurement(b, a) for a in ENDS for b in ENDS)


@pytest.mark.parametrize("ms", [0.0, -1.0, math.nan, math.inf, 1e9])
def test_what_cannot_be_a_latency_is_refused(ms: float) -> None:
    table = LatencyTable()
    assert not table.record(node("n"), location("l"), ms, at=1)
    assert not table.record(node("n"), location("l"), 1, at=1, deviation_ms=ms - 1)
    assert not table.record(node("n"), location("l"), 1, at=math.nan)
    assert len(table) == table.revision == 0


def test_the_revision_grows_with_each_change_alone() -> None:
    table = LatencyTable()
    table.record(node("n"), location("l"), 5, at=1)
    before = table.revision
    table.record(node("n"), location("l"), 5, at=1)
    assert table.revision == before
    table.record(node("n"), location("l"), 6, at=2)
    assert table.revision > before


def test_an_endpoint_that_is_gone_is_forgotten_with_its_measurements() -> None:
    table = LatencyTable()
    table.record(node("n"), location("l"), 5, at=1)
    table.record(node("m"), location("l"), 6, at=1)
    table.forget(node("n"))
    assert table.endpoints() == [location("l"), node("m")]
    assert len(table) == 1
    table.forget(location("l"))
    assert table.endpoints() == []


def test_a_measurement_becomes_less_certain_with_age() -> None:
    measurement = Measurement(100, 0, 3)
    errors = [measurement.error_ms(now) for now in (-5, 0, 86_400, 10 * 86_400)]
    assert errors[0] == errors[1] == 3
    assert errors[1] < errors[2] < errors[3] < 100


def test_scoring_reads_measurements_of_nodes() -> None:
    table = LatencyTable()
    table.record(node("n"), location("l"), 5, at=1, deviation_ms=0.5)
    table.record(location("k"), location("l"), 6, at=1)
    estimates = MeasuredEstimates(table, now=1)
    assert estimates.to_location("l") == {"n": Estimate(5, 0.5, True)}
    assert estimates.to_location("unknown") == {}
    assert Estimate(5, 0.5, False).cautious_ms(2) == 6
