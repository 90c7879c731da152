"""What kubectl makes of deploy/, before anything of it is applied."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.deployment import DEPLOY, container_of, find_resource, render
from tests.cluster.kube import Kube

import clew

pytestmark = pytest.mark.cluster

PAGE = DEPLOY.parent / "docs" / "how-to" / "operate-on-a-cluster.md"
EVERY = [".", "programs", "overlays/istio", "overlays/replicas", "overlays/repeats"]


def images(found: list[dict[str, Any]]) -> list[str]:
    """Of the operator and the server, then those that the operator makes the others of."""
    told = find_resource(found, "ConfigMap", "clew-operator")["data"]
    programs = [container_of(found, name)["image"] for name in ("clew-operator", "clew-server")]
    return [*programs, told["VOLUME_VIEWER_IMAGE"], told["TENSORBOARD_IMAGE"]]


@pytest.mark.parametrize("overlay", EVERY)
def test_the_registry_that_is_named_once_has_everything(
    cluster: Kube, tmp_path: Path, overlay: str
) -> None:
    """By the very commands of the page."""
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    [commands] = re.findall(r"^```sh\n(cat >> deploy/.*?)^```$", PAGE.read_text(), re.M | re.S)
    subprocess.run(["sh", "-c", commands], cwd=tmp_path, check=True)
    clews = f"registry.example.org/clew/clew:{clew.__version__}"
    board = f"registry.example.org/clew/tensorboard:{clew.__version__}"
    found = render(cluster, overlay, deploy=tmp_path / "deploy")
    assert images(found) == [clews, clews, clews, board]


@pytest.mark.parametrize("overlay", EVERY)
def test_the_server_reads_what_the_operator_is_told_to_end(cluster: Kube, overlay: str) -> None:
    found = render(cluster, overlay)
    sources = container_of(found, "clew-operator")["envFrom"]
    assert {"configMapRef": {"name": "clew-culling", "optional": True}} in sources
    read = {
        one["name"]: one["valueFrom"]["configMapKeyRef"]
        for one in container_of(found, "clew-server")["env"]
        if one.get("valueFrom", {}).get("configMapKeyRef", {}).get("name") == "clew-culling"
    }
    assert read == {
        name: {"name": "clew-culling", "key": name, "optional": True}
        for name in ("ENABLE_CULLING", "CULL_IDLE_TIME")
    }
