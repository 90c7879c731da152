"""`examples/training-jobs`: a network really learns, by several workers that share the work."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.operator import claim, run_operator, volume
from tests.cluster.training_jobs import pods_of, ready, wait_for_condition
from tools.cluster.lifecycle import add_image

pytestmark = [pytest.mark.cluster, pytest.mark.heavy, pytest.mark.timeout(2400)]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "training-jobs"
IMAGE = "docker.io/clew/mnist-training:1"
SHORT = ["--epochs=2", "--images=2000", "--learning_rate=0.05"]


def _fetch_digits(folder: Path) -> None:
    known = ROOT / "build" / "mnist" / "data"
    if not known.exists():
        subprocess.run([ROOT / "examples/mnist/download.sh", known], check=True)
    for file in known.glob("*-ubyte*"):
        shutil.copy(file, folder)
    folder.chmod(0o777)


def _example() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLE / "mnist.yaml").read_text())
    return found


def test_two_workers_learn_together(kube: Kube, tmp_path: Path) -> None:
    require_local_cluster(kube)
    add_image(Path(kube.kubeconfig).parent, IMAGE, EXAMPLE / "Containerfile")
    job = _example()
    worker = job["spec"]["tfReplicaSpecs"]["Worker"]
    assert worker["replicas"] == 4, "as in the thesis"
    worker["replicas"] = 2
    worker["template"]["spec"]["containers"][0]["args"] = SHORT
    with (
        volume(kube, kube.namespace, "mnist", access="ReadWriteMany") as data,
        run_operator(kube, tmp_path),
    ):
        _fetch_digits(data)
        shared = {"storageClassName": "", "accessModes": ["ReadWriteMany"]}
        kube.apply(claim("mnist", **shared), job)
        wait_for_condition(kube, "tfjob/mnist", "Running")
        kube("wait", "tfjob/mnist", "--for=condition=Running=false", "--timeout=1800s")
        ended = kube.get("tfjob/mnist")
        assert ready(ended)["reason"] == "Succeeded", ready(ended)["message"]
        assert sorted(pods_of(kube, "mnist")) == ["mnist-worker-0", "mnist-worker-1"]
        result = json.loads((data / "results" / "result.json").read_text())
        assert result["workers"] == 2
        assert result["losses"][-1] < result["losses"][0]
        assert result["test accuracy"] > 0.5
        assert (data / "results" / "weights.h5").stat().st_size > 100_000
        assert list((data / "results" / "logs").rglob("events.out.tfevents.*"))
