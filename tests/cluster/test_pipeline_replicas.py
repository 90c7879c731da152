"""Two servers that share one PostgreSQL run pipelines as Pods, and one of them is killed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.pipeline_lake import (
    Reports,
    lake_for_pods,
    make_project,
    pods_of,
    reports_for_pods,
)
from tests.cluster.test_pipelines_on_kubernetes import BEGIN, GATED
from tests.driver import Project
from tests.local.server import run_server
from tests.wait import wait_until

from clew.pipelines.tasks.kfp_interpreter import compile_pipeline

pytestmark = pytest.mark.cluster


@pytest.fixture
def reports(cluster: Kube) -> Iterator[Reports]:
    with reports_for_pods(cluster) as found:
        yield found


@pytest.fixture
def project(kube: Kube, tmp_path: Path, postgres: str) -> Iterator[Project]:
    require_local_cluster(kube)
    with lake_for_pods(tmp_path / "lake", kube) as lake:
        yield make_project(tmp_path, kube, lake, CLEW_GRAPH=postgres)


def test_another_server_follows_the_pods_of_a_killed_one(
    project: Project, kube: Kube, reports: Reports
) -> None:
    """Both ask for work; the run is that of one, until it is killed. No task runs twice."""
    reports.open("first")
    text = compile_pipeline(project.write("pipeline.py", BEGIN + GATED), sys.executable)
    words = ("--runs", "1", "--on-cluster", "--namespace", kube.namespace)
    with run_server(project, *words) as first:
        with first.client() as client:
            asked = {"spec": text, "parameters": {"url": reports.url}}
            made = client.post("/api/v1/runs", json=asked)
            assert made.status_code == 201, made.text
            wait_until("the second task runs", lambda: reports.counts["second"])
        pods = pods_of(kube, "second")
        with run_server(project, *words) as other, other.client() as client:
            first.process.kill()
            reports.open("second")
            address = f"/api/v1/runs/{made.json()['uid']}"
            wait_until("it ends", lambda: client.get(address).json()["state"] == "succeeded")
            document = client.get(address).json()
    assert document["outputs"] == {"Output": "got 8"}
    second = next(task for task in document["tasks"] if task["name"] == "second")
    assert {second["pod"]} == pods
    assert reports.counts == {"first": 1, "second": 1}
