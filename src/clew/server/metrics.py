"""The Prometheus metrics: requests and their durations, runs by state, ingested events and bytes.

The run counts come from the database at each scrape, so they cover all servers that share it.
"""

from collections.abc import Iterator

from fastapi import Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from clew.errors import ClewError
from clew.pipelines.runs import run_list
from clew.server.server_state import Service

STATES = ("queued", "running", "succeeded", "failed", "canceled")
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one server."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Runs(service))
        self.requests = Counter(
            "clew_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "clew_http_request_seconds",
            "Time from a request to the end of its response; of event streams, to the start.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.in_progress = Gauge(
            "clew_http_requests_under_way", "Requests in progress.", registry=self._registry
        )
        self.events = Counter("clew_ingest_events", "Events ingested.", registry=self._registry)
        self.bytes = Counter(
            "clew_ingest_bytes", "Bytes of content ingested.", registry=self._registry
        )

    def text(self) -> bytes:
        return generate_latest(self._registry)


def respond_with_metrics(request: Request) -> Response:
    metrics: Metrics = request.app.state.metrics
    return Response(metrics.text(), headers={"Content-Type": _PROMETHEUS})


class _Runs(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        try:
            with self._service.graph() as graph:
                counts = run_list.count_by_state(graph)
        except ClewError:  # the other metrics do not need the database
            return
        runs = GaugeMetricFamily("clew_runs", "Requested pipeline runs.", labels=["state"])
        for state in STATES:
            runs.add_metric([state], counts.get(state, 0))
        yield runs
        yield GaugeMetricFamily(
            "clew_queue_length", "Runs that have not started yet.", value=counts.get("queued", 0)
        )

    def describe(self) -> list[Metric]:
        """Empty, so that registering does not query the database."""
        return []
