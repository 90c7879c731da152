"""What a Prometheus reads of the operator."""

from prometheus_client import generate_latest
from tests.unit.kube.sample_resources import NOW, notebook, tensorboard
from tests.unit.kube.test_cluster_cache import cache_of

from clew.kube.controller.metrics import Metrics
from clew.kube.controller.model import STOPPED
from clew.kube.objects import Json


def read(metrics: Metrics) -> dict[str, float]:
    lines = generate_latest(metrics.registry).decode().splitlines()
    rows = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(value) for name, _, value in rows}


def said(resource: Json, status: str, reason: str) -> Json:
    condition = {"type": "Ready", "status": status, "reason": reason}
    return {**resource, "status": {"conditions": [condition]}}


def test_what_is_stopped_does_not_run_and_what_is_gone_is_not_spoken_of() -> None:
    running = said(notebook("a"), "True", "Running")
    stopped = said(notebook("b", namespace="other", annotations={STOPPED: ""}), "False", "Stopped")
    waiting = said(notebook("c"), "False", "NoRoom")
    around = cache_of(resources=[running, stopped, waiting])
    metrics = Metrics(around)
    found = read(metrics)
    assert found['notebook_running{namespace="me"}'] == 1
    assert found['notebook_running{namespace="other"}'] == 0
    for state in ("running", "stopped", "NoRoom"):
        assert found[f'clew_resources{{kind="Notebook",state="{state}"}}'] == 1
    around.gone |= {"uid-b"}
    assert 'notebook_running{namespace="other"}' not in read(metrics)


def test_only_notebooks_are_counted_under_upstream_s_names() -> None:
    metrics = Metrics(cache_of())
    for resource in (notebook("a"), tensorboard("pvc://data")):
        metrics.created(resource)
        metrics.not_created(resource)
        metrics.culled(resource, NOW)
    found = read(metrics)
    assert found['notebook_create_total{namespace="me"}'] == 1
    assert found['notebook_create_failed_total{namespace="me"}'] == 1
    assert found['notebook_culling_total{name="a",namespace="me"}'] == 1
    last = found['last_notebook_culling_timestamp_seconds{name="a",namespace="me"}']
    assert last == NOW.timestamp()
    assert found['clew_culled_total{kind="Tensorboard"}'] == 1
