"""What decisions are based on: latencies, costs of nodes, and where Pods are. No IO.

The watches report changes here. Decisions read latencies that were put together beforehand: with
thousands of nodes, this takes longer than a decision may. After changes, `refresh` begins to use
new estimates, and `renew` puts the latencies for one combination of locations together again.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping

from clew.kube.scheduler.wire_format import Node, Pod
from clew.placement.expected_latencies import ExpectedLatencies, expect_latencies
from clew.placement.latency_estimates import (
    CombinedEstimates,
    Estimate,
    Estimates,
    MeasuredEstimates,
    ReachableEstimates,
)
from clew.placement.latency_table import LatencyTable, location, node
from clew.placement.node_labels import parse_cost, parse_latencies, record_latencies
from clew.placement.pod_assignments import Occupancy

Shares = tuple[tuple[str, float], ...]

_KEPT_EXPECTATIONS = 256
"""Combinations of locations whose latencies are kept at hand; the least recent are dropped."""


class SchedulingState:
    def __init__(self, check_prediction: Callable[[float, float], None]) -> None:
        """`check_prediction` is called with the first measurement of a pair, and with what had been
        predicted for it."""
        self.table = LatencyTable()
        self.occupancy = Occupancy()
        self.costs: dict[str, float] = {}
        self._nodes: set[str] = set()
        self._check_prediction = check_prediction
        self._predicted: Estimates | None = None
        self._predictions: dict[str, Mapping[str, Estimate]] = {}
        """Those of `_predicted` that were looked at, by location."""
        self._unreachable: Mapping[str, Collection[str]] = {}
        self._estimates: Estimates = MeasuredEstimates(self.table, now=0.0)
        self._revision = self.table.revision
        self._latencies = 0
        self._expected: OrderedDict[Shares, ExpectedLatencies] = OrderedDict()
        self._outdated: set[Shares] = set()
        self._asked: OrderedDict[str, None] = OrderedDict()

    def expect(self, shares: Shares) -> ExpectedLatencies:
        """The latencies for these locations; after a refresh the earlier ones, until renewed."""
        found = self._expected.get(shares)
        if found is None:
            self._note_asked(shares)
            found = self._expected[shares] = expect_latencies(self._estimates, shares)
            if len(self._expected) > _KEPT_EXPECTATIONS:
                self._expected.popitem(last=False)
        self._expected.move_to_end(shares)
        return found

    def predict(self, predicted: Estimates) -> None:
        """From the next refresh on, use these where nothing is measured."""
        self._predicted = predicted
        self._predictions.clear()
        self._revision = -1

    def set_unreachable(self, unreachable: Mapping[str, Collection[str]]) -> None:
        """From the next refresh on, predict nothing for these locations of these nodes."""
        self._unreachable = unreachable
        self._revision = -1

    def refresh(self, now: float) -> bool:
        """Use what is known by now; whether anything was new. `now`: seconds since the epoch."""
        if self.table.revision == self._revision:
            return False
        self._revision = self.table.revision
        self._latencies = len(self.table)
        self._estimates = MeasuredEstimates(self.table, now=now)
        if self._predicted is not None:
            reachable = ReachableEstimates(self._predicted, self._unreachable)
            self._estimates = CombinedEstimates(self._estimates, reachable)
        self._outdated = set(self._expected)
        return True

    def renew(self) -> bool:
        """Put the latencies of one combination together again; False if all are up to date."""
        if not self._outdated:
            return False
        shares = self._outdated.pop()
        if shares in self._expected:
            self._expected[shares] = expect_latencies(self._estimates, shares)
        return True

    def see_node(self, found: Node) -> None:
        metadata = found.metadata
        labels, annotations = metadata.labels or {}, metadata.annotations or {}
        self._nodes.add(metadata.name)
        for place, ms in parse_latencies(labels).items():
            self.compare_prediction(metadata.name, place, ms)
        record_latencies(self.table, metadata.name, labels)
        self.costs.pop(metadata.name, None)
        if cost := parse_cost(labels, annotations):
            self.costs[metadata.name] = cost

    def forget_node(self, name: str) -> None:
        self._nodes.discard(name)
        self.costs.pop(name, None)
        self.table.forget(node(name))

    def replace_nodes(self, found: Iterable[Node]) -> None:
        """These are all nodes that there are."""
        present = set()
        for one in found:
            present.add(one.metadata.name)
            self.see_node(one)
        for name in self._nodes - present:
            self.forget_node(name)

    def see_pod(self, pod: Pod) -> None:
        if pod.spec.node:
            self.occupancy.bind(pod.metadata.uid, pod.spec.node, pod.owner)

    def forget_pod(self, uid: str) -> None:
        self.occupancy.remove(uid)

    def replace_pods(self, found: Iterable[Pod]) -> None:
        """These are all Pods of our kind that there are."""
        present = set()
        for pod in found:
            present.add(pod.metadata.uid)
            self.see_pod(pod)
        for uid in self.occupancy.bound_uids() - present:
            self.forget_pod(uid)

    def has_node(self, name: str) -> bool:
        return name in self._nodes

    def node_names(self) -> list[str]:
        return sorted(self._nodes)

    def asked_locations(self) -> frozenset[str]:
        """Those that Pods asked for of late."""
        return frozenset(self._asked)

    def count_nodes(self) -> int:
        return len(self._nodes)

    def count_latencies(self) -> int:
        """How many pairs were measured as of the last refresh; 0 until all of it counts."""
        return 0 if self._outdated else self._latencies

    def compare_prediction(self, name: str, place: str, ms: float) -> None:
        """Report how good the prediction was for what is measured now for the first time."""
        if self._predicted is None:
            return
        if self.table.measurement(node(name), location(place)) is not None:
            return
        if place not in self._predictions:
            self._predictions[place] = self._predicted.to_location(place)
        if (estimate := self._predictions[place].get(name)) is not None:
            self._check_prediction(ms, estimate.ms)

    def _note_asked(self, shares: Shares) -> None:
        for name, _ in shares:
            self._asked[name] = None
            self._asked.move_to_end(name)
        while len(self._asked) > _KEPT_EXPECTATIONS:
            self._asked.popitem(last=False)
