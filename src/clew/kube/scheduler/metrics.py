"""The Prometheus metrics of the extender.

Names of locations are labels only if a latency to them is known: anybody may invent others.
"""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
_MILLISECONDS = (0.3, 1, 3, 10, 20, 50, 100, 150, 200, 300, 1000)
_FIT_SECONDS = (0.1, 0.3, 1, 2, 3, 5, 10, 30)
_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self.requests = Counter(
            "clew_scheduler_requests",
            "Requests of kube-scheduler: decided by latency, neutral, or refused.",
            ("verb", "answer"),
            registry=registry,
        )
        self.seconds = Histogram(
            "clew_scheduler_request_seconds",
            "Time to answer a request of kube-scheduler, without the network.",
            ("verb",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._decisions = Counter(
            "clew_scheduler_decisions",
            "Pods for which a node was chosen.",
            ("location",),
            registry=registry,
        )
        self.limited = Counter(
            "clew_scheduler_over_limit",
            "Requests in which no node was within the limit of the Pod.",
            registry=registry,
        )
        self._placed = Counter(
            "clew_scheduler_placed",
            "Pods that were bound: to the chosen node, or to another one.",
            ("location", "node"),
            registry=registry,
        )
        self._latency = Histogram(
            "clew_scheduler_placed_latency_ms",
            "Latency of the node to which a Pod was bound, in ms.",
            ("location",),
            buckets=_MILLISECONDS,
            registry=registry,
        )
        self._prediction_error = Histogram(
            "clew_scheduler_prediction_relative_error",
            "How far a predicted latency was from the first measurement, as a part of that.",
            buckets=_RATIOS,
            registry=registry,
        )
        self._compared = Counter(
            "clew_scheduler_compared_ms",
            "Sums of the latencies that were predicted and then measured, in ms.",
            ("source",),
            registry=registry,
        )
        self.refused_reports = Counter(
            "clew_scheduler_refused_reports",
            "What agents reported and is implausible, or of another form.",
            registry=registry,
        )
        self.fits = Counter(
            "clew_scheduler_fits",
            "Predictions that were made: ok or failed.",
            ("result",),
            registry=registry,
        )
        self.fit_seconds = Histogram(
            "clew_scheduler_fit_seconds",
            "Time to make a prediction, in a process of its own.",
            buckets=_FIT_SECONDS,
            registry=registry,
        )
        self.requests_written = Counter(
            "clew_scheduler_measurement_requests",
            "Writes of what nodes are to measure: ok or failed.",
            ("result",),
            registry=registry,
        )
        self.watch_failures = Counter(
            "clew_scheduler_watch_failures",
            "Watches that ended with an error and were begun again.",
            ("kind",),
            registry=registry,
        )
        self.reports_lost = Counter(
            "clew_scheduler_reports_lost",
            "Events and conditions of Pods that could not be written.",
            registry=registry,
        )

    def observe(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Add a gauge that is read when it is asked for."""
        Gauge(f"clew_scheduler_{name}", text, registry=self.registry).set_function(value)

    def decided(self, locations: Iterable[str]) -> None:
        for location in locations:
            self._decisions.labels(location).inc()

    def placed(self, locations: Iterable[str], *, as_chosen: bool, ms: float | None) -> None:
        for location in locations:
            self._placed.labels(location, "chosen" if as_chosen else "other").inc()
            if ms is not None:
                self._latency.labels(location).observe(ms)

    def compare_prediction(self, measured_ms: float, predicted_ms: float) -> None:
        self._prediction_error.observe(abs(predicted_ms - measured_ms) / measured_ms)
        self._compared.labels("predicted").inc(predicted_ms)
        self._compared.labels("measured").inc(measured_ms)

    def render(self) -> bytes:
        return generate_latest(self.registry)
