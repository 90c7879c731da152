"""The project's images are on every node, and do there what they are for."""

from __future__ import annotations

import pytest
from tests.cluster.kube import CLEW, Kube, pod
from tools.cluster.images import deployed

import clew

pytestmark = pytest.mark.cluster

RECORD = """
    cd && clew init && echo 3 > numbers && clew exec -- sort -o sorted numbers && clew trace sorted
"""


def test_every_image_is_on_every_node(cluster: Kube) -> None:
    for node in cluster.get("nodes")["items"]:
        names = {name for image in node["status"]["images"] for name in image["names"]}
        assert set(deployed()) <= names


def test_clew_runs_on_every_node_as_nobody_special(kube: Kube, nodes: list[str]) -> None:
    for number, node in enumerate(nodes):
        says = pod(f"version-{number}", on=node, image=CLEW, args=["--version"])
        assert clew.__version__ in kube.run(says)
        who = pod(f"who-{number}", "id", "-u", on=node, image=CLEW)
        assert kube.run(who) == "1000\n"


def test_clew_records_in_a_pod(kube: Kube) -> None:
    """The witness was compiled into the image, and a Pod lets it work without privileges."""
    assert "sort" in kube.run(pod("records", "sh", "-c", RECORD, image=CLEW))
