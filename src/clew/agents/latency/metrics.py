"""The Prometheus metrics of the agent. Locations are labels, since administrators name them;
nodes are not, since there are many."""

from collections.abc import Collection

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from clew.errors import Unavailable
from clew.kube.scheduler.options import Address
from clew.placement.latency_table import Endpoint
from clew.placement.measurement.round_result import RoundResult


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.probes = Counter(
            "clew_latency_probes",
            "Probes: ok, or why there was no answer.",
            ("kind", "result"),
            registry=self.registry,
        )
        self._ms = Gauge(
            "clew_latency_ms",
            "Latency from this node to a location, in ms: the median of the last round.",
            ("location",),
            registry=self.registry,
        )
        self._deviation_ms = Gauge(
            "clew_latency_deviation_ms",
            "Deviation of the probes of the last round, in ms.",
            ("location",),
            registry=self.registry,
        )
        self.publications = Counter(
            "clew_latency_publications",
            "Writes of the node's latencies.",
            ("result",),
            registry=self.registry,
        )
        self._targets = Gauge(
            "clew_latency_targets", "What this node probes.", ("kind",), registry=self.registry
        )
        self._shown: set[str] = set()

    def set_targets(self, ends: Collection[Endpoint]) -> None:
        """What is probed from now on; other locations are shown no more."""
        for kind in ("location", "node"):
            self._targets.labels(kind).set(sum(end.kind == kind for end in ends))
        for name in self._shown - {end.name for end in ends if end.kind == "location"}:
            self._hide(name)

    def set_latency(self, end: Endpoint, result: RoundResult | None) -> None:
        """The last round; None if there was no answer."""
        if end.kind != "location":
            return
        if result is None:
            self._hide(end.name)
            return
        self._shown.add(end.name)
        self._ms.labels(end.name).set(result.ms)
        self._deviation_ms.labels(end.name).set(result.deviation_ms)

    def serve(self, address: Address) -> None:
        try:
            start_http_server(address.port, address.host, self.registry)
        except OSError as error:
            raise Unavailable(f"cannot listen on {address}: {error.strerror}") from error

    def _hide(self, name: str) -> None:
        if name in self._shown:
            self._shown.discard(name)
            self._ms.remove(name)
            self._deviation_ms.remove(name)
