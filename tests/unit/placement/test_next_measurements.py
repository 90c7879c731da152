"""The choice of pairs to measure next."""

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.placement.synthetic_network import SyntheticNetwork, snapshot

from clew.placement.latency_estimates import (
    CombinedEstimates,
    Estimate,
    Estimates,
    MeasuredEstimates,
)
from clew.placement.latency_table import LatencyTable, location, node
from clew.placement.prediction.next_measurements import (
    MOST_PER_NODE,
    NextMeasurement,
    choose_measurements,
)
from clew.placement.prediction.predictor import LatencyPredictor

NODES, LOCATIONS = list("abcdefgh"), list("uvwxyz")
ESTIMATES = st.dictionaries(
    st.sampled_from(LOCATIONS),
    st.dictionaries(
        st.sampled_from(NODES),
        st.builds(Estimate, st.floats(0.001, 1000), st.floats(0, 1000), st.booleans()),
    ),
)


class FixedEstimates:
    def __init__(self, estimates: Mapping[str, Mapping[str, Estimate]]) -> None:
        self._estimates = estimates

    def to_location(self, name: str) -> Mapping[str, Estimate]:
        return self._estimates.get(name, {})


@given(ESTIMATES, st.integers(0, 60))
def test_the_choice_is_bounded_and_names_only_what_is_not_measured(
    estimates: dict[str, dict[str, Estimate]], limit: int
) -> None:
    chosen = choose_measurements(
        FixedEstimates(estimates), nodes=NODES, locations=LOCATIONS, limit=limit
    )
    assert len(chosen) <= limit
    assert len({(it.node, it.location) for it in chosen}) == len(chosen)
    assert all(count <= MOST_PER_NODE for count in Counter(it.node for it in chosen).values())
    for it in chosen:
        known = estimates.get(it.location, {}).get(it.node)
        assert known is None or not known.measured
        assert it.gain_ms > 0
        assert math.isinf(it.gain_ms) == (known is None)


def test_a_node_is_measured_where_it_may_be_the_best_and_not_elsewhere() -> None:
    estimates = {
        "x": {
            "a": Estimate(10.0, 1.0, True),
            "b": Estimate(30.0, 8.0, False),  # may be 6 ms
            "c": Estimate(30.0, 2.0, False),  # 24 ms at best
            "d": Estimate(12.0, 1.0, False),  # may be 9 ms
        }
    }
    assert choose_measurements(
        FixedEstimates(estimates), nodes=list("abcd"), locations=["x"], limit=9
    ) == [NextMeasurement("b", "x", 5.0), NextMeasurement("d", "x", 2.0)]


def test_each_location_has_its_turn() -> None:
    chosen = choose_measurements(
        FixedEstimates({}), nodes=NODES, locations=LOCATIONS, limit=len(LOCATIONS)
    )
    assert {it.location for it in chosen} == set(LOCATIONS)


def test_measuring_what_is_asked_for_finds_better_nodes_than_measuring_at_random() -> None:
    network = SyntheticNetwork(sites=60, nodes=120, locations=20, seed=1)
    names = [end.name for end in network.ends if end.kind == "node"]
    locations = [end.name for end in network.ends if end.kind == "location"]

    def estimate(predictor: LatencyPredictor, table: LatencyTable) -> Estimates:
        prediction = predictor.fit(snapshot(table))
        return CombinedEstimates(MeasuredEstimates(table, now=0.0), prediction)

    def lost_ms(found: Estimates) -> float:
        """How much longer than necessary the latencies of the chosen nodes are."""
        lost = []
        for name in locations:
            estimates = found.to_location(name)
            true = {it: network.latency(node(it), location(name)) for it in names}
            lost.append(true[min(estimates, key=lambda it: estimates[it].ms)] - min(true.values()))
        return float(np.mean(lost))

    asked, unasked = network.measured(0.06), network.measured(0.06)
    predictor = LatencyPredictor()
    for _ in range(3):
        chosen = choose_measurements(
            estimate(predictor, asked), nodes=names, locations=locations, limit=40
        )
        assert len(chosen) == 40
        for it in chosen:
            network.measure(asked, node(it.node), location(it.location))
    random = np.random.default_rng(2)
    while len(unasked) < len(asked):
        a, b = random.choice(names), random.choice(locations)
        network.measure(unasked, node(str(a)), location(str(b)))
    lost_asked = lost_ms(estimate(predictor, asked))
    lost_unasked = lost_ms(estimate(LatencyPredictor(), unasked))
    assert lost_asked < 0.7 * lost_unasked
