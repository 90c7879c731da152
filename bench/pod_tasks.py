"""What a task of a pipeline costs as a Pod, beside the bare Pod that does the same.

    python bench/pod_tasks.py [--rounds 7] [--only-no-op] [--json FILE]

It takes the cluster that KUBECONFIG names, else that of `make cluster`, which it brings up where it
is not there. The object store is versitygw.

- No-op: `true` in the image of busybox. The bare Pod is created through the API, which is faster
  than `kubectl run`, and watched until its container has ended. The task is the only one of a run:
  from its start until it is recorded as ended. Printed is the difference of the medians over
  alternating rounds of five each. The same for tasks that wait for each other: a chain of five,
  from the start of the first to the record of the last, beside five bare Pods in a row.
- Wide: 20 tasks that sleep for 10 s, on two nodes, as a ratio to the ideal, which is 10 s: none
  waits for another. The time is that of the whole run. Beside it, 20 bare Pods that are created
  together.
- Cancel: from the start of `clew pipeline cancel` until the namespace has no Pod any more, while 20
  tasks run.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from operator_load import a_cluster

SOURCE = Path(__file__).parents[1]
sys.path.insert(0, str(SOURCE))

from tests.cluster.kube import CLEW, Kube, pod  # noqa: E402
from tests.cluster.pipeline_lake import lake_for_pods  # noqa: E402
from tests.wait import wait_until  # noqa: E402
from tools.cluster.images import BUSYBOX  # noqa: E402

import clew  # noqa: E402
from clew.api.project import Project  # noqa: E402
from clew.kube.backend.rest_client import RestClient  # noqa: E402
from clew.pipelines.runner.run_types import Change, ClusterOptions  # noqa: E402

CHAIN, WIDE, SECONDS = 5, 20, 10
OVERHEAD, RATIO, CANCEL = 0.3, 1.2, 5.0
LABEL = {"bench": "bare"}
PIPELINES = f"""
from kfp import compiler, dsl

@dsl.container_component
def nothing():
    return dsl.ContainerSpec(image="{BUSYBOX}", command=["true"])

@dsl.container_component
def wait(seconds: int):
    return dsl.ContainerSpec(image="{BUSYBOX}", command=["sleep", seconds])

@dsl.pipeline(name="single")
def single():
    nothing()

@dsl.pipeline(name="chain")
def chain():
    last = nothing()
    for _ in range({CHAIN - 1}):
        last = nothing().after(last)

@dsl.pipeline(name="wide")
def wide(seconds: int = {SECONDS}):
    for _ in range({WIDE}):
        wait(seconds=seconds)
"""


class BarePods:
    """Pods that are created through the API, and watched."""

    def __init__(self, namespace: str) -> None:
        self._client = RestClient()
        self._namespace = namespace

    def run_one_by_one(self, count: int, *command: str) -> float:
        """Seconds from the first request to the end of the last Pod."""
        began = time.monotonic()
        for _ in range(count):
            asyncio.run(self._run(1, command))
        return time.monotonic() - began

    def run_together(self, count: int, *command: str) -> float:
        began = time.monotonic()
        asyncio.run(self._run(count, command))
        return time.monotonic() - began

    async def _run(self, count: int, command: Sequence[str]) -> None:
        """The watch begins before the Pods are created."""
        names = {f"bare-{uuid.uuid4().hex[:8]}" for _ in range(count)}
        made = [{**pod(name, *command), "metadata": self._describe(name)} for name in names]
        params = {"labelSelector": "bench=bare"}
        version = self._client.list_version("Pod", self._namespace, params)
        watching = {**params, "resourceVersion": version}
        async with self._client.watch("Pod", self._namespace, watching) as events:
            await asyncio.gather(*(asyncio.to_thread(self._client.create, one) for one in made))
            async for event in events:
                seen = event["object"]
                if seen["status"].get("phase") == "Failed":
                    sys.exit(f"a Pod failed: {seen['status']}")
                if self._has_ended(seen["status"]):
                    names.discard(seen["metadata"]["name"])
                if not names:
                    return

    @staticmethod
    def _has_ended(status: dict[str, Any]) -> bool:
        """The phase follows a second later, when the node has removed the network of the Pod."""
        containers = status.get("containerStatuses") or ()
        return any("terminated" in container["state"] for container in containers)

    def _describe(self, name: str) -> dict[str, Any]:
        return {"name": name, "namespace": self._namespace, "labels": LABEL}


class Tasks:
    """Runs of pipelines in one project."""

    def __init__(self, project: Project, folder: Path, namespace: str) -> None:
        self._project = project
        self._folder = folder
        self._cluster = ClusterOptions(namespace=namespace, artifacts="s3://lake/runs", image=CLEW)

    def run(self, name: str, count: int) -> float:
        """Seconds from the start of the first task to the record of the last."""
        starts: list[float] = []
        ends: list[float] = []

        def watch(change: Change) -> None:
            if change.seconds is None:
                starts.append(time.monotonic())
            else:
                ends.append(time.monotonic())

        self._run(name, watch)
        if (len(starts), len(ends)) != (count, count):
            sys.exit(f"{len(starts)} tasks started, {len(ends)} ended")
        return ends[-1] - starts[0]

    def run_wide(self) -> float:
        began = time.monotonic()
        self._run("wide", lambda _: None)
        return time.monotonic() - began

    def cancel_wide(self, kube: Kube) -> float:
        """Seconds until all Pods of a run are gone."""
        program = Path(sys.executable).with_name("clew")
        place = ["--on", "kubernetes", "--namespace", kube.namespace]
        words = ["pipeline", "run", self._folder / "wide.yaml", "-p", "seconds=600", *place]
        given: dict[str, Any] = {"cwd": self._project.root, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, "CLEW_ARTIFACTS": self._cluster.artifacts}
        with subprocess.Popen(
            [program, *words], env=environment, stdout=subprocess.DEVNULL, **given
        ):
            wait_until("all run", lambda: list_phases(kube) == ["Running"] * WIDE)
            began = time.monotonic()
            (last,) = (run for run in self._project.pipelines.list() if run.state == "running")
            subprocess.run([program, "pipeline", "cancel", last.uid], check=True, **given)
            while list_phases(kube):
                time.sleep(0.05)
            return time.monotonic() - began

    def _run(self, name: str, watch: Callable[[Change], None]) -> None:
        file = self._folder / f"{name}.yaml"
        run = self._project.pipelines.run(file, cluster=self._cluster, reuse=False, watch=watch)
        if run.state != "succeeded":
            sys.exit(f"the run {run.id} {run.state}: {run.error}")


def list_phases(kube: Kube) -> list[str]:
    return [pod["status"]["phase"] for pod in kube.get("pods", "-l", "clew.dev/run")["items"]]


@contextmanager
def prepare(cluster: Kube) -> Iterator[tuple[BarePods, Tasks, Kube]]:
    name = f"clew-bench-{uuid.uuid4().hex[:6]}"
    cluster("create", "namespace", name)
    try:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            with lake_for_pods(folder / "lake", cluster) as lake:
                lake.admit(Kube(cluster.kubeconfig, name))
                os.environ |= {**lake.environment, "KUBECONFIG": cluster.kubeconfig}
                os.environ["XDG_STATE_HOME"] = str(folder / "state")
                compile_pipelines(folder)
                project = clew.init(folder / "project")
                own = Kube(cluster.kubeconfig, name)
                yield BarePods(name), Tasks(project, folder, name), own
    finally:
        cluster("delete", "namespace", name, "--wait=false")


def compile_pipelines(folder: Path) -> None:
    names: dict[str, Any] = {}
    source = folder / "pipelines.py"  # the SDK reads the source of its functions
    source.write_text(PIPELINES)
    exec(compile(PIPELINES, str(source), "exec"), names)
    for one in ("single", "chain", "wide"):
        names["compiler"].Compiler().compile(names[one], str(folder / f"{one}.yaml"))


def measure(
    bare: BarePods, tasks: Tasks, kube: Kube, rounds: int, *, wide: bool
) -> dict[str, list[float]]:
    bare.run_one_by_one(1, "true")
    tasks.run("single", 1)  # the images are there, what is imported late is imported
    times: dict[str, list[float]] = {
        name: [] for name in ("bare", "task", "chained", "bare_wide", "wide", "cancel")
    }
    for _ in range(rounds):
        times["bare"].append(bare.run_one_by_one(CHAIN, "true") / CHAIN)
        times["task"].append(sum(tasks.run("single", 1) for _ in range(CHAIN)) / CHAIN)
        times["chained"].append(tasks.run("chain", CHAIN) / CHAIN)
        last = {name: f"{found[-1]:.2f} s" for name, found in times.items() if found}
        print("bare {bare}, task {task}, chained {chained}".format_map(last), flush=True)
    for _ in range((rounds + 1) // 2 if wide else 0):
        times["bare_wide"].append(bare.run_together(WIDE, "sleep", str(SECONDS)))
        times["wide"].append(tasks.run_wide())
        times["cancel"].append(tasks.cancel_wide(kube))
        last = {name: found[-1] for name, found in times.items()}
        print(
            f"wide: bare {last['bare_wide']:.2f} s, run {last['wide']:.2f} s;"
            f" canceled in {last['cancel']:.2f} s",
            flush=True,
        )
    return times


def tell(times: dict[str, list[float]]) -> None:
    middle = {name: statistics.median(found) for name, found in times.items() if found}
    for name, text in (("task", "no-op"), ("chained", "no-op in a chain")):
        over = middle[name] - middle["bare"]
        verdict = "ok" if over <= OVERHEAD else "MISSED"
        print(
            f"{text}: bare Pod {middle['bare']:.2f} s, task {middle[name]:.2f} s:"
            f" {over:+.2f} s (at most {OVERHEAD} s): {verdict}"
        )
    if "wide" not in middle:
        return
    ratio, bare = middle["wide"] / SECONDS, middle["bare_wide"] / SECONDS
    verdict = "ok" if ratio <= RATIO else "MISSED"
    print(
        f"{WIDE} tasks of {SECONDS} s: {middle['wide']:.1f} s, {ratio:.2f} of the ideal"
        f" (at most {RATIO}; bare Pods {bare:.2f}): {verdict}"
    )
    verdict = "ok" if middle["cancel"] <= CANCEL else "MISSED"
    print(f"cancel: {WIDE} Pods gone in {middle['cancel']:.1f} s (at most {CANCEL} s): {verdict}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only-no-op", action="store_true", help="not the 20 tasks side by side")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with a_cluster() as kubeconfig, prepare(Kube(kubeconfig)) as prepared:
        print(f"load {os.getloadavg()[0]:.1f}", flush=True)
        times = measure(*prepared, given.rounds, wide=not given.only_no_op)
    tell(times)
    if given.json:
        given.json.write_text(json.dumps(times, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
