"""The process that performs a run is killed at any time, again and again: no task runs twice."""

import random
import subprocess
from pathlib import Path

import pytest
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.pipeline_lake import lake_for_pods, reports_for_pods
from tests.driver import Project
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
