"""The examples of pipelines as Pods, in the images of their Containerfiles, on small data."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.pipeline_lake import Lake, lake_for_pods, make_project
from tests.driver import Project
from tools.cluster.lifecycle import add_image

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def lake(cluster: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    require_local_cluster(cluster)
    with lake_for_pods(tmp_path_factory.mktemp("lake"), cluster) as found:
        yield found


@pytest.fixture
def project(kube: Kube, lake: Lake, tmp_path: Path) -> Project:
    return make_project(tmp_path, kube, lake)


def run(project: Project, kube: Kube, example: str, **given: object) -> dict[str, dict[str, Any]]:
    """Its tasks by name."""
    words = [
        word
        for name, value in given.items()
        for word in ("-p", f"{name}={value if isinstance(value, str) else json.dumps(value)}")
    ]
    where = ("--on", "kubernetes", "--namespace", kube.namespace)
    pipeline = EXAMPLES / example / "pipeline.py"
    ran = project.command("pipeline", "run", pipeline, *where, *words, "--json", timeout=1800)
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    tasks = {task["name"]: task for task in json.loads(ran.stdout)["tasks"]}
    assert {task["state"] for task in tasks.values()} == {"succeeded"}
    return tasks


def test_taxi(project: Project, kube: Kube, cluster: Kube) -> None:
    image = EXAMPLES / "taxi" / "Containerfile"
    add_image(Path(cluster.kubeconfig).parent, "docker.io/clew/taxi:1", image)
    tasks = run(project, kube, "taxi", trips="/data/trips.csv", iterations=20)
    (scores,) = tasks["evaluate"]["artifacts"]["scores"]
    assert 0.5 < scores["metadata"]["variance explained"] < 1
    traced = project.json("trace", "r1/evaluate")
    made = {node.get("name") for node in traced["nodes"]}
    assert made >= {"fetch", "fetch-2", "train", "true-values", "predict", "evaluate"}


@pytest.mark.heavy
@pytest.mark.parametrize(("example", "parameters"), [("mnist", 256_618), ("cifar10", 2_397_226)])
def test_image_classifiers(
    project: Project, kube: Kube, cluster: Kube, lake: Lake, example: str, parameters: int
) -> None:
    image = EXAMPLES / "mnist" / "Containerfile"
    add_image(Path(cluster.kubeconfig).parent, "docker.io/clew/keras:1", image)
    chosen = {"epochs": [5], "batch_sizes": [4], "learning_rates": [0.001], "optimizers": ["Adam"]}
    tasks = run(project, kube, example, folder=f"/data/{example}", **chosen)
    assert tasks["define"]["outputs"] == {"Output": parameters}
    (scores,) = tasks["search/for-loop-1/0/evaluate"]["artifacts"]["scores"]
    assert scores["metadata"]["test accuracy"] > 0.5  # guessing gives 0.1
    (logs,) = tasks["search/for-loop-1/0/train"]["artifacts"]["logs"]
    written = {file.parent.name for file in lake.file(logs["uri"]).glob("*/*tfevents*")}
    assert written == {"train", "validation"}
