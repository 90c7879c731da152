"""Predictions of latencies that nobody measured."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.placement.synthetic_network import SyntheticNetwork, snapshot

from clew.placement.latency_estimates import CombinedEstimates, Estimate, MeasuredEstimates
from clew.placement.latency_table import Endpoint, LatencyTable, location, node
from clew.placement.prediction.predictor import LatencyPredictor, Prediction

ENDS = [*map(node, "abcdef"), *map(location, "xyz")]


def predict(table: LatencyTable) -> Prediction:
    return LatencyPredictor().fit(snapshot(table))


class Outcome:
    """Predictions next to the truth, of the pairs that were not measured."""

    def __init__(self, network: SyntheticNetwork, prediction: Prediction) -> None:
        found = [
            (estimate.ms, estimate.error_ms, network.latency(node(name), end))
            for end in network.ends
            if end.kind == "location"
            for name, estimate in prediction.to_location(end.name).items()
        ]
        self.ms, self.error_ms, self.true_ms = np.array(found).T

    @property
    def relative_error(self) -> float:
        return float(np.median(np.abs(self.ms / self.true_ms - 1)))

    @property
    def within(self) -> float:
        return float(np.mean(np.abs(self.ms - self.true_ms) <= self.error_ms))


@pytest.fixture(scope="module")
def network() -> SyntheticNetwork:
    return SyntheticNetwork(sites=30, nodes=120, locations=30)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(ENDS),
            st.sampled_from(ENDS),
            st.floats(0.001, 10_000),
            st.floats(0, 10_000),
        ),
        max_size=20,
    )
)
@settings(max_examples=15, deadline=None)
def test_whatever_was_measured_the_rest_has_finite_estimates(
    records: list[tuple[Endpoint, Endpoint, float, float]],
) -> None:
    table = LatencyTable()
    for a, b, ms, deviation in records:
        table.record(a, b, ms, at=0.0, deviation_ms=deviation)
    prediction = predict(table)
    both = CombinedEstimates(MeasuredEstimates(table, now=0.0), prediction)
    for end in ENDS[6:]:
        known = {e.name: m for e, m in table.measurements_to(end).items() if e.kind == "node"}
        predicted = prediction.to_location(end.name)
        assert not set(known) & set(predicted)
        for estimate in predicted.values():
            assert not estimate.measured
            assert 0 < estimate.ms <= 10_000
            assert math.isfinite(estimate.error_ms)
        assert both.to_location(end.name) == dict(predicted) | {
            name: Estimate(found.ms, found.error_ms(0.0), True) for name, found in known.items()
        }


@pytest.mark.parametrize(("share", "most"), [(0.1, 0.15), (0.3, 0.1)])
def test_two_thirds_of_the_true_latencies_are_within_the_error(
    network: SyntheticNetwork, share: float, most: float
) -> None:
    outcome = Outcome(network, predict(network.measured(share)))
    assert 0.55 < outcome.within < 0.8
    assert outcome.relative_error < most


def test_wrong_measurements_hardly_matter(network: SyntheticNetwork) -> None:
    table = network.measured(0.3)
    right = Outcome(network, predict(table)).relative_error
    for at, (a, b, found) in enumerate(list(table.pairs())):
        if at % 20 == 0:
            table.record(a, b, found.ms * (30 if at % 40 else 0.03), at=1.0)
    assert Outcome(network, predict(table)).relative_error < 1.3 * right


def test_the_same_measurements_in_another_order_give_the_same_predictions(
    network: SyntheticNetwork,
) -> None:
    table, other = network.measured(0.2), LatencyTable()
    for a, b, found in reversed(list(table.pairs())):
        other.record(b, a, found.ms, at=found.at)
    one, two = predict(table), predict(other)
    assert all(one.to_location(f"l{at:02}") == two.to_location(f"l{at:02}") for at in range(30))


def test_a_later_fit_keeps_predictions_and_takes_in_what_joined(network: SyntheticNetwork) -> None:
    table = network.measured(0.3)
    everyone = {end: table.measurements_to(end) for end in table.endpoints()}
    joining = [node(f"n{at:03}") for at in range(0, 120, 10)]
    for end in joining:
        table.forget(end)
    predictor = LatencyPredictor()
    before = predictor.fit(snapshot(table))
    for end in joining:
        for peer, found in everyone[end].items():
            table.record(end, peer, found.ms, at=0.0)
    after = predictor.fit(snapshot(table))
    changes = [
        abs(after.to_location(f"l{at:02}")[name].ms / estimate.ms - 1)
        for at in range(30)
        for name, estimate in before.to_location(f"l{at:02}").items()
    ]
    assert np.median(changes) < 0.02
    errors = [
        abs(estimate.ms / network.latency(node(name), location(f"l{at:02}")) - 1)
        for at in range(30)
        for name, estimate in after.to_location(f"l{at:02}").items()
        if node(name) in joining
    ]
    assert errors
    assert np.median(errors) < 0.12


def test_few_measurements_of_an_endpoint_make_its_error_larger(network: SyntheticNetwork) -> None:
    table = network.measured(0.3)
    lonely = node("n000")
    table.forget(lonely)
    network.measure(table, lonely, node("n050"))
    prediction = predict(table)
    shares: dict[bool, list[float]] = {True: [], False: []}
    for at in range(30):
        for name, estimate in prediction.to_location(f"l{at:02}").items():
            shares[name == lonely.name].append(estimate.error_ms / estimate.ms)
    assert np.median(shares[True]) > 3 * np.median(shares[False])


def test_a_detour_of_one_site_counts_for_its_nodes_that_were_not_measured() -> None:
    network = SyntheticNetwork(sites=15, nodes=120, locations=15)
    site, target = [node(f"n{at:03}") for at in range(40, 48)], location("l12")
    for end in site:
        network.ms[network.index[end], network.index[target]] *= 2
    table = network.measured(0.3)
    for at, end in enumerate(site):
        if at % 2:
            network.measure(table, end, target)
    estimates = predict(table).to_location(target.name)
    predicted = [end for end in site if end.name in estimates]
    assert predicted
    for end in predicted:
        assert estimates[end.name].ms == pytest.approx(network.latency(end, target), rel=0.25)


def test_nothing_is_predicted_between_endpoints_that_no_measurements_connect() -> None:
    table = LatencyTable()
    table.record(node("a"), location("x"), 10.0, at=0.0)
    table.record(node("b"), node("a"), 5.0, at=0.0)
    table.record(node("c"), location("y"), 10.0, at=0.0)
    prediction = predict(table)
    assert set(prediction.to_location("x")) == {"b"}
    assert prediction.to_location("y") == {}
    assert prediction.to_location("unknown") == {}


def test_without_measurements_there_are_no_estimates() -> None:
    assert predict(LatencyTable()).to_location("x") == {}


def test_latencies_to_a_node_are_predicted_if_it_is_a_target() -> None:
    table = LatencyTable()
    table.record(node("a"), node("b"), 10.0, at=0.0)
    table.record(node("b"), node("c"), 20.0, at=0.0)
    prediction = LatencyPredictor().fit(snapshot(table), targets=[node("a")])
    assert set(prediction.to_endpoint(node("a"))) == {"c"}
    assert prediction.to_endpoint(node("b")) == {}


def test_a_prediction_is_the_same_after_it_came_from_another_process(
    network: SyntheticNetwork,
) -> None:
    pairs = pickle.loads(pickle.dumps(snapshot(network.measured(0.1))))
    prediction = LatencyPredictor().fit(pairs)
    copy = pickle.loads(pickle.dumps(prediction))
    assert prediction.to_location("l00")
    assert all(
        copy.to_location(f"l{at:02}") == prediction.to_location(f"l{at:02}") for at in range(30)
    )
