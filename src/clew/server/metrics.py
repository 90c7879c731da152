"""What a Prometheus reads: requests and their times, runs by state, what was taken in.

Numbers of runs are asked of the database when somebody looks, so they are those of every server
that shares it.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from clew.errors import ClewError
from clew.server.catalogue import run_list
from clew.server.service import Service

STATES = ("queued", "running", "succeeded", "failed", "canceled")
_TIMES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The numbers of one server."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Runs(service))
        self.requests = Counter(
            "clew_http_requests",
            "Requests that were answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "clew_http_request_seconds",
            "Time from a request to the end of its answer; of streams, to the beginning.",
            ("method", "route"),
            buckets=_TIMES,
            registry=self._registry,
        )
        self.under_way = Gauge(
            "clew_http_requests_under_way", "Answers under way.", registry=self._registry
        )
        self.events = Counter(
            "clew_ingest_events", "Events that were taken in.", registry=self._registry
        )
        self.bytes = Counter(
            "clew_ingest_bytes", "Bytes of content that were taken in.", registry=self._registry
        )

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Runs(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        try:
            with self._service.graph() as graph:
                found = run_list.count_by_state(graph)
        except ClewError:  # the other numbers are told all the same
            return
        runs = GaugeMetricFamily(
            "clew_runs", "Pipeline runs that were asked for.", labels=["state"]
        )
        for state in STATES:
            runs.add_metric([state], found.get(state, 0))
        yield runs
        yield GaugeMetricFamily(
            "clew_queue_length", "Runs that nobody has begun yet.", value=found.get("queued", 0)
        )

    def describe(self) -> list[Metric]:
        """What is counted is known without asking the database."""
        return []
