"""A task that ran in a container of this machine is reused as a Pod, and the other way round."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.kube import CLEW, Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.pipeline_lake import Lake, lake_for_pods, pin_image
from tests.cluster.test_pipelines_on_kubernetes import tasks
from tests.driver import Project
from tests.local.programs.runtimes import Daemon, podman
from tools.cluster.images import BUSYBOX
from tools.cluster.lifecycle import find_cluster
from tools.cluster.nodes import ctr

pytestmark = pytest.mark.cluster

PIPELINE = """
from kfp import dsl
from kfp.dsl import Dataset, Input, Output

@dsl.container_component
def write(text: str, data: Output[Dataset]):
    return dsl.ContainerSpec(
        image="IMAGE", command=["sh", "-ec", 'echo "$0" > "$1"', text, data.path])

@dsl.container_component
def read(data: Input[Dataset], said: dsl.OutputPath(str), more: str = ""):
    return dsl.ContainerSpec(
        image="IMAGE", command=["sh", "-ec", 'cat "$0" > "$1"; printf "$2" >> "$1"', data.path,
        said, more])

@dsl.component(base_image="CLEW", install_kfp_package=False)
def measure(text: str) -> int:
    return len(text)

@dsl.pipeline(name="both")
def both(text: str, more: str = ""):
    said = read(data=write(text=text).outputs["data"], more=more).outputs["said"]
    measure(text=said)
"""


@pytest.fixture(scope="module")
def lake(cluster: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    require_local_cluster(cluster)
    with lake_for_pods(tmp_path_factory.mktemp("lake"), cluster) as found:
        yield found


@pytest.fixture
def image(kube: Kube) -> Iterator[str]:
    with pin_image(kube, BUSYBOX, "docker.io/clew/both") as name:
        yield name


@pytest.fixture
def daemon(kube: Kube, image: str, tmp_path: Path) -> Iterator[Daemon]:
    """A container runtime of this machine with the image of the nodes."""
    cluster = find_cluster(Path(kube.kubeconfig).parent)
    assert cluster is not None
    archive = tmp_path / "image.tar"
    ctr(cluster, cluster.nodes[0], "images", "export", str(archive), image)
    with podman() as found:
        loaded = found("load", data=archive.read_bytes())
        name, _, digest = image.partition("@")
        found("tag", loaded.rpartition(" ")[2].strip(), f"{name}:1")
        assert digest in found("image", "inspect", "--format", "{{.RepoDigests}}", image)
        found.runs(image)
        yield found


def test_results_are_reused_on_the_other_side(
    kube: Kube, lake: Lake, image: str, daemon: Daemon, tmp_path: Path
) -> None:
    lake.admit(kube)
    project = Project(
        tmp_path / "project",
        KUBECONFIG=kube.kubeconfig,
        CLEW_ARTIFACTS="s3://lake/runs",
        CLEW_IMAGE=CLEW,
        **lake.environment,
        **daemon.variables,
    )
    text = PIPELINE.replace("IMAGE", image).replace("CLEW", CLEW)
    (project / "both.py").write_text(text)
    pods = ("--on", "kubernetes", "--namespace", kube.namespace)

    def run(*words: str) -> dict[str, dict[str, str]]:
        return tasks(project.json("pipeline", "run", "both.py", *words))

    def why(task: str) -> str:
        return project.command("pipeline", "why", task).stdout.decode()

    here = run("-p", "text=one")
    assert {task["state"] for task in here.values()} == {"succeeded"}
    there = run(*pods, "-p", "text=one")
    assert {name: task["state"] for name, task in there.items()} == {
        "write": "reused",
        "read": "reused",
        "measure": "succeeded",  # on this machine it ran as a process, in no image
    }
    assert "it is run in an image now" in there["measure"]["why"]
    assert "it ran in a container on one machine" in why("r2/read")
    assert "only declared inputs, image and outputs were compared" in why("r2/read")
    (data,) = there["write"]["artifacts"]["data"]
    assert lake.file(data["uri"]).read_text() == "one\n"

    # The copy is an input like any other.
    later = run(*pods, "-p", "text=one", "-p", "more=again")
    assert (later["write"]["state"], later["read"]["state"]) == ("reused", "succeeded")
    assert later["read"]["outputs"] == {"said": "one\nagain"}

    first = run(*pods, "-p", "text=two")
    assert {task["state"] for task in first.values()} == {"succeeded"}
    back = run("-p", "text=two")
    assert (back["write"]["state"], back["read"]["state"]) == ("reused", "reused")
    assert f"it ran as the Pod {first['read']['pod']}" in why("r5/read")
    assert "only declared" not in why("r5/read"), "the files that it read are those of its image"
    (data,) = back["write"]["artifacts"]["data"]
    assert Path(data["uri"]).read_text() == "two\n"
    more = run("-p", "text=two", "-p", "more=again")
    assert (more["write"]["state"], more["read"]["outputs"]) == ("reused", {"said": "two\nagain"})

    # What cannot be checked is not reused.
    (stored,) = first["write"]["artifacts"]["data"]
    lake.file(stored["uri"]).write_text("else\n")
    Path(data["uri"]).unlink()
    lost = run("-p", "text=two")
    assert lost["write"]["state"] == "succeeded"
    assert "changed" in lost["write"]["why"]
