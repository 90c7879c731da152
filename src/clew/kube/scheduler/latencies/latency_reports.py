"""What the agents of nodes report of latencies, in the table that decisions read. No IO.

An agent may be wrong, or lie. It is believed about its own node only, about locations that are
configured and nodes that exist, within the bounds of the table, and about the past.
"""

from collections.abc import Collection, Iterable

from clew.kube.latency.node_latency import Found, NodeLatency, Status, parse_status
from clew.kube.scheduler.metrics import Metrics
from clew.kube.scheduler.scheduling_state import SchedulingState
from clew.placement.latency_table import Endpoint, is_plausible, location, node
from clew.placement.node_labels import is_entered

OLDEST_SECONDS = 3600.0
"""What is older does not count: its agent has ended, since agents write several times an hour."""
CLOCK_SECONDS = 300.0
"""The clock of a node may be so far ahead. What is later would never become old."""
_SLICES = 120


class LatencyReports:
    def __init__(self, state: SchedulingState, metrics: Metrics) -> None:
        self.locations: frozenset[str] = frozenset()
        """Those that are configured; nothing else is taken."""
        self._state = state
        self._metrics = metrics
        self._reports: dict[str, Status] = {}
        self._recorded: dict[str, set[Endpoint]] = {}
        """By node: what is in the table because of its report."""
        self._oldest_at: dict[str, float] = {}
        self._slice = 0

    def set_locations(self, names: Collection[str], *, now: float) -> None:
        if self.locations != names:
            self.locations = frozenset(names)
            self._apply(list(self._reports), now)

    def replace(self, found: Iterable[NodeLatency], *, now: float) -> None:
        """These are all reports that there are."""
        gone = dict.fromkeys(self._reports)
        for report in found:
            gone.pop(report.metadata.name, None)
            self.see(report, now=now)
        for name in gone:
            self.forget(name)

    def see(self, report: NodeLatency, *, now: float) -> None:
        name = report.metadata.name
        status = parse_status(report.status)
        if status is None:
            self._metrics.refused_reports.inc()
            status = Status()
        before = self._reports.get(name, Status())
        self._reports[name] = status
        if status.unreachable != before.unreachable:
            self._state.set_unreachable(self.unreachable())
        self.apply(name, now=now)

    def forget(self, name: str) -> None:
        before = self._reports.pop(name, None)
        if before is not None:
            if before.unreachable:
                self._state.set_unreachable(self.unreachable())
            self._oldest_at.pop(name, None)
            self._remove(name, self._recorded.pop(name, set()))

    def apply(self, name: str, *, now: float) -> None:
        """Record what a node reported: to be called when its labels or the locations change."""
        report = self._reports.get(name)
        if report is None or not self._state.has_node(name):
            return
        own = node(name)
        recorded: dict[Endpoint, float] = {}
        for end, found in self._select(report):
            at = found.at.timestamp()
            plausible = is_plausible(found.ms, found.deviation_ms)
            if end == own or not plausible or at > now + CLOCK_SECONDS:
                self._metrics.refused_reports.inc()
            elif at >= now - OLDEST_SECONDS:
                if end.kind == "location":
                    self._state.compare_prediction(name, end.name, found.ms)
                self._state.table.record(
                    own, end, found.ms, at=min(at, now), deviation_ms=found.deviation_ms
                )
                recorded[end] = at
        self._remove(name, self._recorded.get(name, set()) - recorded.keys())
        self._recorded[name] = set(recorded)
        self._oldest_at.pop(name, None)
        if recorded:
            self._oldest_at[name] = min(recorded.values())

    def apply_some(self, *, now: float) -> None:
        """Apply a part of all reports again, another one each time: so what is old is removed."""
        self._slice = (self._slice + 1) % _SLICES
        self._apply(list(self._reports)[self._slice :: _SLICES], now)

    def unreachable(self) -> dict[str, Collection[str]]:
        """By node, the locations that did not answer."""
        return {
            name: frozenset(report.unreachable)
            for name, report in self._reports.items()
            if report.unreachable
        }

    def oldest_age(self, *, now: float) -> float:
        """Of the measurements that count, in seconds; 0 without any."""
        return max(0.0, now - min(self._oldest_at.values(), default=now))

    def _apply(self, names: Iterable[str], now: float) -> None:
        for name in names:
            self.apply(name, now=now)

    def _select(self, report: Status) -> Iterable[tuple[Endpoint, Found]]:
        """The pairs that a node may report."""
        for found in report.locations:
            if found.name in self.locations:
                yield location(found.name), found
        for found in report.nodes:
            if self._state.has_node(found.name):
                yield node(found.name), found

    def _remove(self, name: str, ends: Iterable[Endpoint]) -> None:
        table = self._state.table
        for end in ends:
            known = table.measurement(node(name), end)
            if known is not None and not is_entered(known):
                table.remove(node(name), end)
