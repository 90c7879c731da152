"""What nodes probe, and what the probes say."""

import pytest

from clew.placement.latency_estimates import Estimate
from clew.placement.measurement.default_locations import DEFAULT_LOCATIONS, choose_own_locations
from clew.placement.measurement.locations import (
    MOST_LOCATIONS,
    ProbeAddress,
    parse_locations,
    parse_probe_address,
)
from clew.placement.measurement.round_result import RoundResult, sum_up_round
from clew.placement.measurement.target_record import FAILED_ROUNDS, TargetRecord
from clew.placement.prediction.measurement_plan import MOST_ASKED, NEIGHBOURS, plan_measurements


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("edge.example.org:443", ProbeAddress("edge.example.org", 443)),
        ("192.0.2.7", ProbeAddress("192.0.2.7")),
        ("2001:db8::1", ProbeAddress("2001:db8::1")),
        ("[2001:db8::1]:80", ProbeAddress("2001:db8::1", 80)),
        ("host:0", None),
        ("host:65536", None),
        ("host:8o", None),
        ("[host]:80", None),
        ("a b", None),
        ("http://host/", None),
        ("", None),
    ],
)
def test_addresses(text: str, address: ProbeAddress | None) -> None:
    assert parse_probe_address(text) == address


def test_entries_that_are_no_locations_are_named_and_left_out() -> None:
    found = parse_locations({"HOME": "h:1\n", "-x": "h:1", "B": "h:port"})
    assert found.addresses == {"HOME": ProbeAddress("h", 1)}
    assert len(found.problems) == 2
    many = parse_locations({f"L{n}": "h" for n in range(MOST_LOCATIONS + 5)})
    assert len(many.addresses) == MOST_LOCATIONS
    assert len(many.problems) == 5


def test_a_delayed_probe_does_not_count() -> None:
    assert sum_up_round([10.0, 10.2, 9.9, 500.0, 10.1], 0) == RoundResult(
        10.1, pytest.approx(0.148, abs=0.01)
    )


def test_a_round_with_many_failures_says_nothing() -> None:
    assert sum_up_round([10.0, 10.0, 10.0], 2) is not None
    assert sum_up_round([10.0, 10.0], 3) is None
    assert sum_up_round([], 0) is None


def test_a_change_counts_when_a_second_round_confirms_it() -> None:
    record = TargetRecord()
    assert record.take(RoundResult(10, 0.1), at=1.0).changed
    assert not record.take(RoundResult(10.1, 0.1), at=2.0).changed
    assert record.take(RoundResult(50, 0.1), at=3.0) == (False, True)
    assert record.latest == RoundResult(10.1, 0.1)
    assert record.take(RoundResult(50.2, 0.1), at=4.0) == (True, False)
    assert record.latest == RoundResult(50.2, 0.1)


def test_one_unusual_round_changes_nothing() -> None:
    record = TargetRecord()
    record.take(RoundResult(10, 0.1), at=1.0)
    record.take(RoundResult(50, 0.1), at=2.0)
    assert record.take(RoundResult(10, 0.1), at=3.0) == (False, False)
    assert record.take(RoundResult(50, 0.1), at=4.0) == (False, True)


def test_a_slow_drift_is_noticed() -> None:
    record = TargetRecord()
    record.take(RoundResult(10, 0), at=0.0)
    changes = [record.take(RoundResult(10 + n * 0.2, 0), at=n).changed for n in range(1, 20)]
    assert any(changes)


def test_a_target_that_fails_again_and_again_is_unreachable_until_it_answers() -> None:
    record = TargetRecord()
    record.take(RoundResult(10, 0.1), at=1.0)
    taken = [record.take(None, at=2.0 + n) for n in range(FAILED_ROUNDS + 1)]
    assert [one.changed for one in taken] == [False, False, True, False]
    assert [one.repeat for one in taken] == [True, True, False, False]
    assert record.unreachable
    assert record.latest is None
    assert record.take(RoundResult(11, 0.1), at=9.0).changed
    assert not record.unreachable


class Known:
    """Every node measured the first locations, and the others are predicted of all."""

    def __init__(self, nodes: list[str], measured: int) -> None:
        self._nodes = nodes
        self._measured = measured

    def to_location(self, name: str) -> dict[str, Estimate]:
        measured = int(name[1:]) < self._measured
        return {
            node: Estimate(float(10 + at), 0.1 if measured else 20.0, measured)
            for at, node in enumerate(self._nodes)
        }


NODES = [f"n{n}" for n in range(30)]
LOCATIONS = [f"L{n}" for n in range(40)]


def test_with_few_locations_every_node_measures_all_and_nothing_is_asked() -> None:
    few = LOCATIONS[:DEFAULT_LOCATIONS]
    assert choose_own_locations("n1", few) == set(few)
    assert plan_measurements(Known(NODES, 0), nodes=NODES, locations=few) == {}


def test_with_many_locations_nodes_choose_others() -> None:
    chosen = {node: choose_own_locations(node, LOCATIONS) for node in NODES}
    assert {len(names) for names in chosen.values()} == {DEFAULT_LOCATIONS}
    assert set().union(*chosen.values()) == set(LOCATIONS)


def test_nodes_are_asked_for_the_nearest_and_for_what_may_be_nearer() -> None:
    plan = plan_measurements(
        Known(NODES, 20), nodes=NODES, locations=LOCATIONS, excluded={("n0", "L30")}
    )
    measured = {
        location
        for location in LOCATIONS[:20]
        if location in plan["n0"].locations or location in choose_own_locations("n0", LOCATIONS)
    }
    assert len(measured) > DEFAULT_LOCATIONS  # n0 is the nearest of all of them
    predicted = [(node, name) for node, of in plan.items() for name in of.locations]
    assert any(int(name[1:]) >= 20 for _, name in predicted)
    assert ("n0", "L30") not in predicted
    for node, request in plan.items():
        assert len(request.locations) <= MOST_ASKED
        assert not choose_own_locations(node, LOCATIONS) & set(request.locations)


def test_neighbours_connect_all_nodes() -> None:
    plan = plan_measurements(Known(NODES, 20), nodes=NODES, locations=LOCATIONS)
    reached, new = {"n0"}, {"n0"}
    while new:
        assert all(len(plan[node].nodes) <= NEIGHBOURS for node in new)
        new = {peer for node in new for peer in plan[node].nodes} - reached
        reached |= new
    assert reached == set(NODES)
