"""The project's images are on every node, and do there what they are for."""

import re
from pathlib import Path

import pytest
from tests.cluster.kube import CLEW, Kube, pod
from tests.cluster.location import require_local_cluster
from tests.cluster.operator import JUPYTER
from tools.cluster.images import project_images

import clew

pytestmark = pytest.mark.cluster

RECORD = """
    cd && clew init && echo 3 > numbers && clew exec -- sort -o sorted numbers && clew trace sorted
"""


def test_every_image_is_on_every_node(cluster: Kube) -> None:
    require_local_cluster(cluster)
    for node in cluster.get("nodes")["items"]:
        names = {name for image in node["status"]["images"] for name in image["names"] or ()}
        assert set(project_images()) <= names


def test_clew_runs_on_every_node_as_an_unprivileged_user(kube: Kube, nodes: list[str]) -> None:
    for number, node in enumerate(nodes):
        says = pod(f"version-{number}", on=node, image=CLEW, args=["--version"])
        assert clew.__version__ in kube.run(says)
        who = pod(f"who-{number}", "id", "-u", on=node, image=CLEW)
        assert kube.run(who) == "1000\n"


def test_clew_records_in_a_pod(kube: Kube) -> None:
    """The witness was compiled into the image, and a Pod lets it work without privileges."""
    assert "sort" in kube.run(pod("records", "sh", "-c", RECORD, image=CLEW))


def test_the_jupyter_image_is_below_its_size_limit(cluster: Kube) -> None:
    require_local_cluster(cluster)
    [size] = {
        image["sizeBytes"]
        for node in cluster.get("nodes")["items"]
        for image in node["status"]["images"]
        if JUPYTER in (image["names"] or ())
    }
    assert size <= 700_000_000


@pytest.mark.parametrize("name", ["jupyter", "tensorboard"])
def test_all_that_is_in_an_image_is_pinned(kube: Kube, name: str) -> None:
    file = Path(__file__).parents[2] / "deploy" / "images" / name / "requirements.txt"
    lines = [line.partition("#")[0].strip() for line in file.read_text().splitlines()]
    image = f"docker.io/clew/{name}:{clew.__version__}"
    lists = pod("lists", f"/opt/{name}/bin/pip", "list", "--format=freeze", image=image)
    inside = pins(kube.run(lists).splitlines()) - pins([f"clew=={clew.__version__}"])
    assert {pin for pin in inside if not pin.startswith(("pip==", "setuptools=="))} == {
        pin for pin in pins(lines) if not pin.startswith("setuptools==")
    }


def pins(lines: list[str]) -> set[str]:
    """Each with its name as packages are compared."""
    split = (line.partition("==") for line in lines if "==" in line)
    return {f"{re.sub('[-_.]+', '-', name).lower()}=={version}" for name, _, version in split}
