"""`examples/placement`: where its steps run, and which answers take the long network path."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tools.cluster.binaries import search_path
from tools.cluster.lifecycle import add_image

pytestmark = pytest.mark.cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "placement"
IMAGE = "docker.io/clew/taxi-placement:1"
SMALL = ("--trainings", "light", "--scale", "100", "--requests", "100,1000", "--repeats", "1")


def read_lines(file: Path) -> dict[str, Any]:
    """All that is in the lines of JSON."""
    found: dict[str, Any] = {}
    for line in file.read_text().splitlines():
        found |= json.loads(line)
    return found


def test_predictions_near_their_clients_are_not_delayed(
    cluster: Kube, nodes: list[str], spaces: str, tmp_path: Path
) -> None:
    require_local_cluster(cluster)
    add_image(Path(cluster.kubeconfig).parent, IMAGE, EXAMPLE / "Containerfile")
    cloud, edge = nodes[:2]
    where = ("--namespace", spaces, "--edge", edge, "--cloud", cloud, "--results", str(tmp_path))
    programs = f"{Path(sys.executable).parent}:{search_path()}"
    environment = {**os.environ, "PATH": programs, "KUBECONFIG": cluster.kubeconfig}
    ran = subprocess.run(
        [EXAMPLE / "run.sh", *where, *SMALL], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    places = {each.name: each for each in (tmp_path / "light").iterdir()}
    pods = {
        name: dict(line.split() for line in (each / "nodes.txt").read_text().splitlines())
        for name, each in places.items()
    }
    assert pods == {
        "edge": {"monolith-edge": edge},
        "cloud": {"monolith-cloud": cloud},
        "split": {"train": cloud, "predict": edge},
    }
    reasons = (places["split"] / "reasons.txt").read_text()
    assert f"on {edge}, " in reasons
    assert "from HOME-EDGE: the best of 2 feasible nodes" in reasons
    answers = {name: read_lines(each / "responses.jsonl") for name, each in places.items()}
    assert answers["edge"]["delayed_packets"] == answers["split"]["delayed_packets"] == 0
    assert answers["cloud"]["delayed_bytes"] > 1000 * len("[10.0, 1, 3.1, 620, 17]")
    models = [read_lines(each / "training.json") for each in places.values()]
    assert {model["iterations"] for model in models} == {100}
    assert len({model["rmse"] for model in models}) == 1
    for chart in ("response-time.svg", "training-time.svg"):
        assert ElementTree.parse(tmp_path / chart).getroot().tag.endswith("svg")
    left = {name for node in cluster.get("nodes")["items"] for name in node["metadata"]["labels"]}
    assert not left & {"HOME-EDGE", "example.org/site"}
