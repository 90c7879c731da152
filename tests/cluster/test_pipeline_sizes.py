"""Pipelines as Pods that are large: artifacts of gigabytes, parameters of 50 MB, loops of 1,000."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.kube import CLEW, Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.pipeline_lake import (
    Lake,
    Reports,
    lake_for_pods,
    make_project,
    reports_for_pods,
)
from tests.driver import Project
from tools.cluster.images import BUSYBOX

from clew.kube.tasks.outcome import is_over

pytestmark = pytest.mark.cluster


@pytest.fixture
def lake(cluster: Kube, tmp_path: Path) -> Iterator[Lake]:
    require_local_cluster(cluster)
    with lake_for_pods(tmp_path / "lake", cluster) as found:
        yield found


@pytest.fixture
def project(kube: Kube, lake: Lake, tmp_path: Path) -> Project:
    return make_project(tmp_path, kube, lake)


@pytest.fixture
def reports(cluster: Kube) -> Iterator[Reports]:
    with reports_for_pods(cluster) as found:
        yield found


def start(project: Project, kube: Kube, text: str, *words: str) -> subprocess.Popen[Any]:
    """A run whose output goes to files: nobody reads it meanwhile."""
    project.write("pipeline.py", text)
    where = ("--on", "kubernetes", "--namespace", kube.namespace)
    with (project / "output").open("wb") as output, (project / "errors").open("wb") as errors:
        return project.start(
            *("pipeline", "run", "pipeline.py", *where, *words, "--json"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            popen=subprocess.Popen,
        )


def end(project: Project, process: subprocess.Popen[Any]) -> dict[str, Any]:
    assert process.wait() == 0, (project / "errors").read_text()[-2000:]
    document: dict[str, Any] = json.loads((project / "output").read_text())
    return document


DATA = f"""
from kfp import dsl
from kfp.dsl import Dataset, Input, Output

WRITE = '''
mkdir "$3"
for i in $(seq "$1"); do dd if=/dev/urandom bs=1M count=64 2>/dev/null; done > "$2"
for i in $(seq "$0"); do head -c 1000000 /dev/urandom > "$3/$i"; done
md5sum < "$2" > "$4"
cat "$3"/* | md5sum >> "$4"
'''
READ = '''
md5sum < "$0" > "$2"
cat "$1"/* | md5sum >> "$2"
'''

@dsl.container_component
def write(files: int, pieces: int, file: Output[Dataset], folder: Output[Dataset],
          sums: dsl.OutputPath(str)):
    return dsl.ContainerSpec(image="{BUSYBOX}", command=["sh", "-ec", WRITE],
        args=[files, pieces, file.path, folder.path, sums])

@dsl.container_component
def read(file: Input[Dataset], folder: Input[Dataset], sums: dsl.OutputPath(str)):
    return dsl.ContainerSpec(image="{BUSYBOX}", command=["sh", "-ec", READ],
        args=[file.path, folder.path, sums])

@dsl.pipeline(name="data")
def data(files: int, pieces: int):
    one = write(files=files, pieces=pieces)
    read(file=one.outputs["file"], folder=one.outputs["folder"])
"""


@pytest.mark.heavy
def test_an_artifact_of_ten_gigabytes_and_a_directory(project: Project, kube: Kube) -> None:
    """They are streamed: the helper's containers have a memory limit of 1 GiB."""
    pieces = 160
    process = start(project, kube, DATA, "-p", f"pieces={pieces}", "-p", "files=1000")
    made = {task["name"]: task for task in end(project, process)["tasks"]}
    assert made["write"]["outputs"] == made["read"]["outputs"]
    (file,) = made["write"]["artifacts"]["file"]
    assert file["size"] == pieces * (64 << 20)


TEXT = f"""
from kfp import dsl

component = dsl.component(base_image="{CLEW}", install_kfp_package=False)

@component
def write(letters: int) -> str:
    return "é" * (letters - 2) + "\\n "

@component
def measure(text: str) -> str:
    return f"{{len(text)}} {{text[0]}} {{text[-2:]!r}}"

@dsl.pipeline(name="text")
def text(letters: int = 25_000_000) -> str:
    return measure(text=write(letters=letters).output).output
"""


@pytest.mark.heavy
def test_a_parameter_of_fifty_megabytes(project: Project, kube: Kube) -> None:
    """As UTF-8: half as many letters."""
    document = end(project, start(project, kube, TEXT))
    assert document["outputs"] == {"Output": "25000000 é '\\n '"}


LOOP = f"""
from kfp import dsl

@dsl.container_component
def report(url: str, number: int):
    return dsl.ContainerSpec(
        image="{BUSYBOX}", command=["sh", "-ec", 'wget -qO- "$0/$1"', url, number])

@dsl.pipeline(name="loop")
def loop(url: str):
    with dsl.ParallelFor(list(range(1000)), parallelism=20) as number:
        report(url=url, number=number)
"""


@pytest.mark.heavy
def test_a_loop_of_a_thousand_keeps_its_limit(
    project: Project, kube: Kube, reports: Reports
) -> None:
    for number in range(1000):
        reports.open(str(number))
    process = start(project, kube, LOOP, "-p", f"url={reports.url}")
    most = 0
    while process.poll() is None:
        most = max(most, sum(not is_over(pod) for pod in kube.get("pods")["items"]))
    assert end(project, process)["state"] == "succeeded"
    assert 10 < most <= 20
    assert reports.counts == {str(number): 1 for number in range(1000)}
