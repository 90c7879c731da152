"""The latencies that a Pod's clients would have."""

import pytest

from clew.placement.expected_latencies import expect_latencies
from clew.placement.latency_estimates import Estimate


class Known:
    """Estimates by location and node."""

    def __init__(self, **known: dict[str, Estimate]) -> None:
        self._known = known

    def to_location(self, name: str) -> dict[str, Estimate]:
        return self._known.get(name, {})


ESTIMATES = Known(
    A={"n1": Estimate(10, 0, True), "n2": Estimate(20, 5, False)},
    B={"n1": Estimate(30, 0, True), "n3": Estimate(1, 0, True)},
)


def test_an_uncertain_latency_counts_as_a_longer_one() -> None:
    expected = expect_latencies(ESTIMATES, (("A", 1.0),))
    assert expected.mean_ms == {"n1": 10, "n2": 25}
    assert expected.measured == {"n1"}


def test_locations_count_by_their_shares_and_the_farthest_is_known() -> None:
    expected = expect_latencies(ESTIMATES, (("A", 0.75), ("B", 0.25)))
    assert expected.mean_ms == {"n1": 15}  # the others are unknown to one of them
    assert expected.farthest_ms == {"n1": 30}


def test_a_location_that_is_unknown_does_not_count() -> None:
    expected = expect_latencies(ESTIMATES, (("A", 0.2), ("nowhere", 0.8)))
    assert expected.mean_ms == pytest.approx({"n1": 10, "n2": 25})
    assert expected.unknown == ("nowhere",)
    assert not expect_latencies(ESTIMATES, (("nowhere", 1.0),)).mean_ms
