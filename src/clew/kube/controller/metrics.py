"""The Prometheus metrics of the operator: upstream's, under their names, and our own."""

from collections import Counter as Count
from collections.abc import Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from clew.kube.cluster_cache import ClusterCache
from clew.kube.controller.model import is_stopped
from clew.kube.objects import Key, Object, condition_of, is_ready, name_of, namespace_of

_FRAMEWORKS = {"TFJob": "tensorflow", "PyTorchJob": "pytorch"}


class Metrics:
    def __init__(self, cache: ClusterCache) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Resources(cache))
        self.seconds = Histogram(
            "clew_reconcile_seconds",
            "Time to compare what is wanted with what is there, and to carry it out.",
            ("kind",),
            registry=self.registry,
        )
        self._errors = Counter(
            "clew_reconcile_errors",
            "Attempts that failed and are made again.",
            ("kind",),
            registry=self.registry,
        )
        self._culled = Counter(
            "clew_culled", "Idle resources that were ended.", ("kind",), registry=self.registry
        )
        self._created = Counter(
            "notebook_create", "Notebooks made.", ("namespace",), registry=self.registry
        )
        self._create_failed = Counter(
            "notebook_create_failed",
            "Attempts to make a Notebook that failed.",
            ("namespace",),
            registry=self.registry,
        )
        self._culling = Counter(
            "notebook_culling",
            "Notebooks stopped because they were idle.",
            ("namespace", "name"),
            registry=self.registry,
        )
        self._last_culling = Gauge(
            "last_notebook_culling_timestamp_seconds",
            "When a notebook was last stopped because it was idle.",
            ("namespace", "name"),
            registry=self.registry,
        )

        self._jobs = {
            condition: Counter(
                f"training_operator_jobs_{word}",
                f"Training jobs that {what}.",
                ("job_namespace", "framework"),
                registry=self.registry,
            )
            for condition, word, what in (
                ("Created", "created", "were created"),
                ("Succeeded", "successful", "succeeded"),
                ("Failed", "failed", "failed"),
                ("Restarting", "restarted", "had a replica that failed and started again"),
            )
        }

    def job_changed(self, job: Object, status: Object) -> None:
        """Count the conditions that a new status of a training job has and the old had not."""
        labels = namespace_of(job), _FRAMEWORKS[job["kind"]]
        for condition, counter in self._jobs.items():
            if _is_true({"status": status}, condition) and not _is_true(job, condition):
                counter.labels(*labels).inc()

    def failed(self, key: Key) -> None:
        self._errors.labels(key.kind).inc()

    def created(self, resource: Object) -> None:
        if resource["kind"] == "Notebook":
            self._created.labels(namespace_of(resource)).inc()

    def not_created(self, resource: Object) -> None:
        if resource["kind"] == "Notebook":
            self._create_failed.labels(namespace_of(resource)).inc()

    def culled(self, resource: Object, now: datetime) -> None:
        self._culled.labels(resource["kind"]).inc()
        if resource["kind"] == "Notebook":
            labels = namespace_of(resource), name_of(resource)
            self._culling.labels(*labels).inc()
            self._last_culling.labels(*labels).set(now.timestamp())


def _is_true(resource: Object, condition: str) -> bool:
    return bool(condition_of(resource, condition).get("status") == "True")


def state_of(resource: Object) -> str:
    """running, stopped, or the reason why it is neither."""
    if is_ready(resource):
        return "running"
    reason = condition_of(resource, "Ready").get("reason")
    return "stopped" if is_stopped(resource) else str(reason or "unknown")


class _Resources(Collector):
    """Counted on each scrape, so deleted resources disappear."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache

    def collect(self) -> Iterator[Metric]:
        resources = self._cache.resources()
        states = Count((each["kind"], state_of(each)) for each in resources)
        all_ = GaugeMetricFamily("clew_resources", "Resources by state.", labels=["kind", "state"])
        for (kind, state), count in sorted(states.items()):
            all_.add_metric([kind, state], count)
        yield all_
        running = GaugeMetricFamily("notebook_running", "Notebooks that run.", labels=["namespace"])
        spaces: Count[str] = Count()
        for each in resources:
            if each["kind"] == "Notebook":
                spaces[namespace_of(each)] += state_of(each) == "running"
        for namespace, count in sorted(spaces.items()):
            running.add_metric([namespace], count)
        yield running

    def describe(self) -> list[Metric]:
        """Empty: the registry then need not collect once at registration."""
        return []
