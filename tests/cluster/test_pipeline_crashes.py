"""The process that performs a run is killed at any time, again and again: no task runs twice."""

import json
import random
import subprocess
from pathlib import Path

import pytest
from tests.cluster.concurrency import ALONE
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.pipeline_lake import lake_for_pods, make_project, reports_for_pods
from tests.cluster.test_cluster_lifecycle import done
from tests.driver import Project
from tests.wait import wait_until
from tools.cluster.images import BUSYBOX

pytestmark = [pytest.mark.cluster, pytest.mark.heavy]

NAMES = "abcd"
MAX_KILLS = 5
DIAMOND = f"""
from kfp import dsl

@dsl.container_component
def step(name: str, url: str, after: str, out: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="{BUSYBOX}",
        command=["sh", "-ec", 'wget -qO- "$0/$1"; echo -n "$2$1" > "$3"', url, name, after, out])

@dsl.pipeline(name="diamond")
def diamond(url: str) -> str:
    a = step(name="a", url=url, after="")
    b = step(name="b", url=url, after=a.output)
    c = step(name="c", url=url, after=a.output)
    return step(name="d", url=url, after=b.output).after(c).output
"""


@pytest.mark.parametrize("seed", range(8))
def test_kills_at_any_time(seed: int, kube: Kube, tmp_path: Path) -> None:
    require_local_cluster(kube)
    chance = random.Random(seed)
    with lake_for_pods(tmp_path / "lake", kube) as lake, reports_for_pods(kube) as reports:
        lake.admit(kube)
        for name in NAMES:
            reports.open(name)
        project = Project(
            tmp_path / "project",
            KUBECONFIG=kube.kubeconfig,
            CLEW_ARTIFACTS="s3://lake/runs",
            **lake.environment,
        )
        (project / "pipeline.py").write_text(DIAMOND)
        place = ("--on", "kubernetes", "--namespace", kube.namespace)
        words = ("run", "pipeline.py", *place, "-p", f"url={reports.url}")
        for kill in range(MAX_KILLS):
            process = project.start("pipeline", *words, popen=subprocess.Popen)
            try:
                process.communicate(timeout=chance.uniform(0.5 if kill else 2.5, 8))
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            words = ("resume", "r1")
        else:
            project("pipeline", *words)
        document = project.json("pipeline", "show", "r1")
        assert (document["state"], document["outputs"]) == ("succeeded", {"Output": "abd"})
        assert reports.counts == dict.fromkeys(NAMES, 1)
        assert not kube.get("pods")["items"]


LOST = f"""
from kfp import dsl, kubernetes

@dsl.container_component
def step(url: str, out: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="{BUSYBOX}",
        command=["sh", "-ec", 'wget -qO- "$0/step"; echo -n done > "$1"', url, out])

@dsl.pipeline(name="lost")
def lost(url: str) -> str:
    task = step(url=url)
    kubernetes.add_toleration(
        task, key="node.kubernetes.io/unreachable", operator="Exists", effect="NoExecute",
        toleration_seconds=1)
    return task.output
"""


@ALONE
def test_a_task_whose_node_is_lost_runs_elsewhere(kube: Kube, tmp_path: Path) -> None:
    """Its first Pod runs on, where nobody can reach it, and writes where nobody looks."""
    require_local_cluster(kube)
    with lake_for_pods(tmp_path / "lake", kube) as lake, reports_for_pods(kube) as reports:
        project = make_project(tmp_path, kube, lake)
        project.write("pipeline.py", LOST)
        place = ("--on", "kubernetes", "--namespace", kube.namespace)
        words = ("run", "pipeline.py", *place, "-p", f"url={reports.url}", "--json")
        process = project.start("pipeline", *words)
        wait_until("the task runs", lambda: reports.counts["step"] == 1)
        (first,) = kube.get("pods")["items"]
        kubelet = f"kubelet-{first['spec']['nodeName']}"
        folder = Path(kube.kubeconfig).parent
        done(folder, "stop", kubelet, "--signal", "KILL")
        try:
            wait_until("it runs again", lambda: reports.counts["step"] == 2)
            reports.open("step")
            output, errors = process.communicate()
        finally:
            done(folder, "start", kubelet)
        assert process.returncode == 0, errors
        document = json.loads(output)
        assert document["outputs"] == {"Output": "done"}
        (task,) = document["tasks"]
        assert task["node"] != first["spec"]["nodeName"]
        assert f"its node {first['spec']['nodeName']} does not answer" in task["why"]
        assert reports.counts == {"step": 2}
