"""Pipelines whose tasks are real Pods, with their artifacts in a real S3 server."""

import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.kube import CLEW as IMAGE
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.pipeline_lake import (
    Lake,
    Reports,
    lake_for_pods,
    make_project,
    pin_image,
    pods_of,
    reports_for_pods,
)
from tests.driver import Project
from tests.local.server import run_server
from tests.wait import wait_until
from tools.cluster.images import BUSYBOX

from clew.kube.tasks.task_pod import RUN_LABEL, TASK_ANNOTATION
from clew.pipelines.pods.pod_attempt import list_pod_names
from clew.pipelines.tasks.kfp_interpreter import compile_pipeline

pytestmark = pytest.mark.cluster

BEGIN = f"""
from kfp import dsl, kubernetes
from kfp.dsl import Dataset, Input, Model, Output

component = dsl.component(base_image="{IMAGE}", install_kfp_package=False)
"""


@pytest.fixture(scope="module")
def lake(cluster: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    require_local_cluster(cluster)
    with lake_for_pods(tmp_path_factory.mktemp("lake"), cluster) as found:
        yield found


@pytest.fixture
def reports(cluster: Kube) -> Iterator[Reports]:
    with reports_for_pods(cluster) as found:
        yield found


@pytest.fixture
def project(kube: Kube, lake: Lake, tmp_path: Path) -> Project:
    return make_project(tmp_path, kube, lake)


def run(project: Project, kube: Kube, text: str, *words: str, status: int = 0) -> dict[str, Any]:
    """Run the pipeline of this text to its end, and return its document."""
    (project / "pipeline.py").write_text(BEGIN + text)
    found = project.json("pipeline", "run", *place(kube), *words, status=status)
    assert isinstance(found, dict)
    return found


def place(kube: Kube) -> tuple[str, ...]:
    return "pipeline.py", "--on", "kubernetes", "--namespace", kube.namespace


def tasks(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {task["name"]: task for task in document["tasks"]}


DATA = f"""
@component
def make(rows: int, letters: int, table: Output[Dataset], model: Output[Model]) -> str:
    import os
    print("making", rows)
    with open(table.path, "w") as file:
        file.write("x" * rows)
    os.makedirs(model.path + "/layers")
    for number in range(3):
        with open(f"{{model.path}}/layers/{{number}}.bin", "wb") as file:
            file.write(bytes([number]) * 1000)
    os.symlink("/proc/self/environ", model.path + "/layers/spy")
    table.metadata["rows"] = rows
    return "é" * letters

@dsl.container_component
def count(table: Input[Dataset], model: Input[Model], said: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="{BUSYBOX}",
        command=["sh", "-ec"],
        args=[
            'wc -c < "$0"; ! test -e "$1/layers/spy"; cat "$1"/layers/*.bin | md5sum > "$2"',
            table.path, model.path, said,
        ],
    )

@component
def measure(text: str) -> int:
    return len(text)

@dsl.pipeline(name="data")
def data(rows: int = 5, letters: int = 3_000_000) -> str:
    one = make(rows=rows, letters=letters)
    unseen = measure(text=one.outputs["Output"])
    kubernetes.add_pod_annotation(unseen, "clew.dev/trace", "off")
    two = count(table=one.outputs["table"], model=one.outputs["model"])
    return two.outputs["said"]
"""


def test_data_goes_from_task_to_task(project: Project, kube: Kube, lake: Lake) -> None:
    document = run(project, kube, DATA)
    assert document["state"] == "succeeded", document["error"]
    made = tasks(document)["make"]
    expected = hashlib.md5(b"".join(bytes([n]) * 1000 for n in range(3))).hexdigest()
    assert document["outputs"] == {"Output": f"{expected}  -\n"}
    assert tasks(document)["measure"]["outputs"] == {"Output": 3_000_000}
    assert made["pod"].startswith("clew-make-")
    assert made["node"] in {n["metadata"]["name"] for n in kube.get("nodes")["items"]}
    assert made["image_digest"].startswith("sha256:")
    (table,) = made["artifacts"]["table"]
    assert table["size"] == 5
    assert table["metadata"] == {"rows": 5}
    assert lake.file(table["uri"]).read_text() == "xxxxx"
    assert project.command("cat", "r1/make:table").stdout == b"xxxxx"
    (model,) = made["artifacts"]["model"]
    assert model["digest"] is None
    assert project.command("pipeline", "logs", "r1/count").stdout == b"5\n"
    assert not kube.get("pods")["items"]

    traced = project.json("trace", "r1/count")
    files = {node["path"] for node in traced["nodes"] if node["kind"] == "file"}
    assert table["uri"] in files
    assert {f"{model['uri']}/layers/{n}.bin" for n in range(3)} <= files
    names = {node.get("name") for node in traced["nodes"]}
    assert {"make", "count"} <= names
    shown = project.json("show", made["execution"])
    assert {gap["what"] for gap in shown["gaps"]} == {"content"}
    assert any("/layers/spy" in gap["why"] for gap in shown["gaps"])
    why = project.command("pipeline", "why", "r1/make").stdout.decode()
    assert made["pod"] in why
    assert made["node"] in why

    check_processes(project, document)


def check_processes(project: Project, document: dict[str, Any]) -> None:
    """What the tracer saw in the Pods of `DATA`."""
    made, counted, measured = (tasks(document)[name] for name in ("make", "count", "measure"))
    shown = project.json("show", made["execution"], "--detail")
    assert any(process["exe"].startswith("/usr/bin/python3") for process in shown["tree"])
    (table,) = made["artifacts"]["table"]
    files = {file["path"]: file for file in shown["files"]}
    assert files[table["uri"]]["role"] == "output"
    assert any("/json/__pycache__/" in path for path in files)
    shown = project.json("show", counted["execution"], "--detail")
    programs = {process["command"][0]: process["id"] for process in shown["tree"]}
    assert {"sh", "cat", "wc"} <= programs.keys()
    (model,) = made["artifacts"]["model"]
    traced = project.json("trace", f"{made['execution']}:{model['uri']}/layers/0.bin", "--down")
    readers = {edge["from"] for edge in traced["edges"]} | {edge["to"] for edge in traced["edges"]}
    assert programs["cat"] in readers
    (gap,) = project.json("show", measured["execution"])["gaps"]
    assert gap["why"] == (
        "processes in the Pod were not recorded (they are not to be):"
        " only declared inputs and outputs are known"
    )


FAILURES = f"""
@component
def divide(number: int) -> float:
    return number / 0

@dsl.container_component
def greedy():
    return dsl.ContainerSpec(
        image="{BUSYBOX}", command=["sh", "-c", "head -c 200000000 /dev/zero | tail"])

@dsl.container_component
def nowhere():
    return dsl.ContainerSpec(image="docker.io/clew/nowhere:1", command=["true"])

@dsl.container_component
def twice(url: str):
    return dsl.ContainerSpec(
        image="{BUSYBOX}", command=["sh", "-c", 'wget -qO- "$0/twice"; exit 3', url])

@dsl.pipeline(name="failures")
def failures(url: str):
    divide(number=1)
    greedy().set_memory_limit("20Mi")
    kubernetes.set_image_pull_policy(nowhere(), "Never")
    twice(url=url).set_retry(1)
"""


def test_failures_are_explained(project: Project, kube: Kube, reports: Reports) -> None:
    reports.open("twice")
    document = run(project, kube, FAILURES, "-p", f"url={reports.url}", status=1)
    errors = {name: task["error"] for name, task in tasks(document).items()}
    assert errors["divide"].startswith("ZeroDivisionError: division by zero (component.py, line")
    assert "more memory than its limit of 20Mi" in errors["greedy"]
    assert "docker.io/clew/nowhere:1" in errors["nowhere"]
    assert errors["twice"] == "it ended with status 3"
    assert reports.counts == {"twice": 2}
    assert len(tasks(document)["twice"]["attempts"]) == 2
    assert not kube.get("pods")["items"]


GATED = """
@component
def first(url: str) -> int:
    from urllib.request import urlopen
    urlopen(url + "/first").read()
    return 7

@component
def second(number: int, url: str) -> int:
    from urllib.request import urlopen
    urlopen(url + "/second").read()
    print("after the gate")
    return number + 1

@component
def third(number: int) -> str:
    return f"got {number}"

@dsl.pipeline(name="gated")
def gated(url: str) -> str:
    one = first(url=url)
    return third(number=second(number=one.output, url=url).output).output
"""


def is_recorded(project: Project, task: str) -> bool:
    return bool(tasks(project.json("pipeline", "show", "r1"))[task]["state"] == "succeeded")


def test_a_killed_run_is_resumed(project: Project, kube: Kube, reports: Reports) -> None:
    """The Pod that runs meanwhile is followed, nothing runs twice, and no Pod is left."""
    reports.open("first")
    (project / "pipeline.py").write_text(BEGIN + GATED)
    process = project.start("pipeline", "run", *place(kube), "-p", f"url={reports.url}")
    wait_until("the second task runs", lambda: reports.counts["second"])
    wait_until("the first task is recorded", lambda: is_recorded(project, "first"))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    # As if it had been killed before it removed the Pod of the first task.
    uid = project.json("pipeline", "show", "r1")["uid"]
    left = list_pod_names(uid, "first", 1)[0]
    marks = (f"--labels={RUN_LABEL}={uid}", f"--annotations={TASK_ANNOTATION}=first")
    kube("run", left, f"--image={BUSYBOX}", *marks, "--restart=Never", "--", "true", ok=False)
    assert left in [pod["metadata"]["name"] for pod in kube.get("pods")["items"]]
    pods = pods_of(kube, "second")
    assert len(pods) == 1
    reports.open("second")
    document = project.json("pipeline", "resume", "r1")
    assert document["outputs"] == {"Output": "got 8"}
    assert reports.counts == {"first": 1, "second": 1}
    assert {tasks(document)["second"]["pod"]} == pods
    assert b"after the gate" in project.command("pipeline", "logs", "r1/second").stdout
    assert not kube.get("pods")["items"]


def test_cancel_removes_the_pods(project: Project, kube: Kube, reports: Reports) -> None:
    reports.open("first")
    (project / "pipeline.py").write_text(BEGIN + GATED)
    process = project.start("pipeline", "run", *place(kube), "-p", f"url={reports.url}")
    wait_until("the second task runs", lambda: reports.counts["second"])
    document = project.json("pipeline", "cancel", "r1")
    process.communicate()
    assert process.returncode == 130
    assert tasks(document)["second"]["state"] == "canceled"
    assert not kube.get("pods")["items"]


LOOP = f"""
@dsl.container_component
def wait(url: str, number: int):
    return dsl.ContainerSpec(
        image="{BUSYBOX}", command=["sh", "-ec", 'wget -qO- "$0/loop"; echo "$1"', url, number])

@dsl.pipeline(name="loop")
def loop(url: str):
    with dsl.ParallelFor(list(range(6)), parallelism=2) as number:
        wait(url=url, number=number)
"""


def test_a_loop_keeps_its_limit(project: Project, kube: Kube, reports: Reports) -> None:
    (project / "pipeline.py").write_text(BEGIN + LOOP)
    process = project.start("pipeline", "run", *place(kube), "--json", "-p", f"url={reports.url}")
    wait_until("two tasks run", lambda: reports.most["loop"] == 2)
    reports.open("loop")
    output, _ = process.communicate()
    document = json.loads(output)
    assert document["state"] == "succeeded"
    assert (reports.counts["loop"], reports.most["loop"]) == (6, 2)


REUSED = """
@dsl.container_component
def write(text: str, data: Output[Dataset]):
    return dsl.ContainerSpec(
        image="IMAGE", command=["sh", "-ec", 'echo "$0" > "$1"', text, data.path])

@dsl.container_component
def read(data: Input[Dataset], url: str):
    return dsl.ContainerSpec(
        image="IMAGE", command=["sh", "-ec", 'wget -qO- "$1/$(cat "$0")"', data.path, url])

@dsl.pipeline(name="reused")
def reused(text: str, url: str):
    read(data=write(text=text).outputs["data"], url=url)
"""


@pytest.fixture
def pinned(kube: Kube) -> Iterator[str]:
    with pin_image(kube, BUSYBOX, "docker.io/clew/pinned") as name:
        yield name


def test_what_is_unchanged_is_reused(
    project: Project, kube: Kube, lake: Lake, reports: Reports, pinned: str
) -> None:
    for name in ("one", "two"):
        reports.open(name)
    text = REUSED.replace("IMAGE", pinned)
    words = ("-p", f"url={reports.url}")
    run(project, kube, text, *words, "-p", "text=one")
    again = tasks(run(project, kube, text, *words, "-p", "text=one"))
    assert {task["state"] for task in again.values()} == {"reused"}
    assert "it ran as the Pod" in again["read"]["why"]
    assert "only declared" not in again["read"]["why"], "its processes were recorded"
    assert again["read"]["reused_from"] == "r1/read"

    other = tasks(run(project, kube, text, *words, "-p", "text=two"))
    assert other["write"]["why"].startswith("its parameter text changed from 'one' to 'two'")
    assert other["read"]["why"].startswith("its input data changed")

    (data,) = tasks(project.json("pipeline", "show", "r1"))["write"]["artifacts"]["data"]
    lake.file(data["uri"]).unlink()
    lost = tasks(run(project, kube, text, *words, "-p", "text=one"))
    assert "which it made, is gone" in lost["write"]["why"]
    assert lost["read"]["state"] == "reused", "its input was made again, and is the same"
    assert reports.counts == {"one": 1, "two": 1}


def test_a_pod_that_was_deleted_is_started_again(
    project: Project, kube: Kube, reports: Reports
) -> None:
    reports.open("first")
    (project / "pipeline.py").write_text(BEGIN + GATED)
    process = project.start("pipeline", "run", *place(kube), "--json", "-p", f"url={reports.url}")
    wait_until("the second task runs", lambda: reports.counts["second"])
    (lost,) = pods_of(kube, "second")
    kube("delete", "pod", lost, "--grace-period=0", "--wait=false")
    wait_until("it runs again", lambda: reports.counts["second"] == 2)
    reports.open("second")
    output, _ = process.communicate()
    second = tasks(json.loads(output))["second"]
    assert second["state"] == "succeeded"
    assert second["why"].endswith(
        "tried again: a user or another controller deleted its Pod while it ran"
    )
    assert second["pod"] != lost
    assert len(second["attempts"]) == 1


def test_a_server_and_the_one_that_follows_it(
    project: Project, kube: Kube, reports: Reports
) -> None:
    """A server runs tasks as Pods. They run on while it is replaced."""
    reports.open("first")
    (project / "pipeline.py").write_text(BEGIN + GATED)
    text = compile_pipeline(project / "pipeline.py", sys.executable)
    words = ("--runs", "1", "--on-cluster", "--namespace", kube.namespace)
    with run_server(project, *words) as server, server.client() as client:
        asked = {"spec": text, "parameters": {"url": reports.url}}
        made = client.post("/api/v1/runs", json=asked)
        assert made.status_code == 201, made.text
        wait_until("the second task runs", lambda: reports.counts["second"])
    pods = pods_of(kube, "second")
    with run_server(project, *words) as server, server.client() as client:
        address = f"/api/v1/runs/{made.json()['uid']}"
        wait_until("the run goes on", lambda: client.get(address).json()["state"] == "running")
        reports.open("second")
        wait_until("it ends", lambda: client.get(address).json()["state"] == "succeeded")
        document = client.get(address).json()
    assert document["outputs"] == {"Output": "got 8"}
    assert {tasks(document)["second"]["pod"]} == pods
    assert reports.counts == {"first": 1, "second": 1}
