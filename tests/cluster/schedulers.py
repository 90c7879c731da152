"""A real kube-scheduler with the extender beside it, on nodes that kwok plays."""

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx2
import numpy as np
import pytest
import yaml
from lightkube.config.client_adapter import Client, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig
from scipy.optimize import linear_sum_assignment
from tests import forkserver
from tests.cluster.operator import free_port
from tests.wait import wait_until
from tools.cluster.binaries import program_directory

SOURCE = Path(__file__).parents[2]
DEPLOY = SOURCE / "deploy" / "scheduler"
NAME = "latency-aware"
WRITERS = 8


class Api:
    """The API server of a cluster, in plain JSON."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        config = KubeConfig.from_file(kubeconfig).get()
        assert config is not None
        self.http = Client(config, ConnectionParams(timeout=httpx2.Timeout(60.0)))

    def get(self, path: str, **params: str) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(path, params=params).raise_for_status().json()
        return found

    def create(self, path: str, objects: Iterable[Mapping[str, Any]]) -> None:
        """Create many objects, some at the same time."""
        with ThreadPoolExecutor(WRITERS) as pool:
            for answer in pool.map(lambda one: self.http.post(path, json=one), objects):
                assert answer.is_success, answer.text

    def patch(self, path: str, change: Mapping[str, Any]) -> None:
        kind = {"Content-Type": "application/merge-patch+json"}
        self.http.patch(path, content=json.dumps(change), headers=kind).raise_for_status()

    def clear(self) -> None:
        """Delete all Pods and nodes."""
        self.clear_pods()
        self._clear("/api/v1/nodes")

    def clear_pods(self) -> None:
        self._clear("/api/v1/namespaces/default/pods")

    def _clear(self, path: str) -> None:
        self.http.delete(path, params={"gracePeriodSeconds": "0"}).raise_for_status()
        wait_until(f"{path} are gone", lambda: not self.get(path)["items"])

    def add_nodes(
        self, latencies: Mapping[str, Mapping[str, object]], *, cpu: str = "64", pods: str = "110"
    ) -> None:
        """Nodes by name with their labels; returns when all are ready."""
        self.create("/api/v1/nodes", (make_node(n, of, cpu, pods) for n, of in latencies.items()))
        wait_until("the nodes are ready", lambda: self._are_ready(len(latencies)))

    def _are_ready(self, count: int) -> bool:
        nodes = self.get("/api/v1/nodes", resourceVersion="0")["items"]
        ready = [n for n in nodes if n["status"].get("phase") == "Running"]
        return len(ready) >= count

    def add_pods(self, *pods: Mapping[str, Any]) -> None:
        self.create("/api/v1/namespaces/default/pods", pods)

    def pods(self) -> dict[str, dict[str, Any]]:
        found = self.get("/api/v1/namespaces/default/pods", resourceVersion="0")["items"]
        return {pod["metadata"]["name"]: pod for pod in found}

    def uids(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.pods().values()}

    def placements(self) -> dict[str, str]:
        """The node of each Pod that has one."""
        return {name: node for name, pod in self.pods().items() if (node := node_of(pod))}

    def wait_for_placements(self, count: int) -> dict[str, str]:
        def placed() -> dict[str, str] | None:
            found = self.placements()
            return found if len(found) >= count else None

        found: dict[str, str] = wait_until(f"{count} Pods have a node", placed)
        return found

    def event(self, pod: str, reason: str) -> dict[str, Any]:
        """An event on a Pod; it is waited for."""
        uid = self.pods()[pod]["metadata"]["uid"]  # earlier tests had Pods of the same name
        about = f"involvedObject.uid={uid},reason={reason}"

        def written() -> list[dict[str, Any]]:
            path = "/api/v1/namespaces/default/events"
            items: list[dict[str, Any]] = self.get(path, fieldSelector=about)["items"]
            return items

        found: list[dict[str, Any]] = wait_until(f"{pod} has an event {reason}", written)
        return found[0]


def node_of(pod: Mapping[str, Any]) -> str:
    return str(pod["spec"].get("nodeName", ""))


def make_map(nodes: int, locations: int) -> dict[str, dict[str, float]]:
    """Latencies of nodes that are spread over a plane, as are the locations."""
    draw = random.Random(nodes)
    places = {f"L{n}": (draw.uniform(0, 100), draw.uniform(0, 100)) for n in range(locations)}
    found = {}
    for number in range(nodes):
        at, access = (draw.uniform(0, 100), draw.uniform(0, 100)), draw.expovariate(0.5)
        found[f"n{number}"] = {
            name: round(0.3 + access + math.dist(at, place), 3) for name, place in places.items()
        }
    return found


def assign(latencies: Mapping[str, Mapping[str, float]], wanted: Sequence[str], room: int) -> float:
    """The least sum of latencies that any assignment of Pods to nodes has; `wanted`: the location
    of each Pod, `room`: how many Pods a node has room for."""
    costs = [[of[name] for of in latencies.values() for _ in range(room)] for name in wanted]
    matrix = np.array(costs)
    rows, columns = linear_sum_assignment(matrix)
    return float(matrix[rows, columns].sum())


def make_node(name: str, labels: Mapping[str, object], cpu: str, pods: str) -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "256Gi", "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {n: str(v) for n, v in labels.items()}},
        "status": {"capacity": room, "allocatable": room},
    }


def make_pod(
    name: str,
    location: str | None = None,
    *,
    annotations: Mapping[str, str] | None = None,
    cpu: str = "100m",
    scheduler: str = NAME,
    **metadata: Any,
) -> dict[str, Any]:
    """A Pod that answers predictions near a location; without one, an ordinary Pod."""
    labels = {"typeOfComponent": "Predict", "OurLocation": location} if location else {}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": dict(annotations or {}),
            **metadata,
        },
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


@contextmanager
def fake_cluster(folder: Path) -> Iterator[Api]:
    """A cluster of nodes that kwok plays, without any at first."""
    tool = (sys.executable, "-m", "tools.cluster", "--folder", str(folder))
    try:
        subprocess.run([*tool, "up", "--kwok"], cwd=SOURCE, check=True)
        api = Api(folder / "kubeconfig")
        with api.http:
            yield api
    finally:
        subprocess.run([*tool, "down"], cwd=SOURCE, check=True)


class Program:
    """A process with a log, that can be killed and started again."""

    def __init__(self, log: Path, *command: str, **environment: str) -> None:
        self.log = log
        self._command = command
        self._environment = {**os.environ, **environment}
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.process = forkserver.Popen(
                self._command, env=self._environment, stdout=output, stderr=output
            )
        wait_until(f"{self.log.stem} is ready", self.is_ready)

    def is_ready(self) -> bool:
        raise NotImplementedError

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def is_running(self) -> bool:
        return self.process.poll() is None


def parse_metrics(text: str) -> dict[str, float]:
    rows = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in rows}


class Extender(Program):
    """A real `clew scheduler`."""

    def __init__(self, folder: Path, kubeconfig: Path, port: int, *options: str) -> None:
        observed = free_port()
        self.url = f"http://127.0.0.1:{observed}"
        words = ("scheduler", "--listen", f"127.0.0.1:{port}", *options)
        also = ("--metrics-listen", f"127.0.0.1:{observed}")
        log = folder / "extender.log"
        super().__init__(log, *forkserver.CLEW, *words, *also, KUBECONFIG=str(kubeconfig))

    def is_ready(self) -> bool:
        assert self.is_running(), self.log.read_text()
        try:
            return httpx2.get(f"{self.url}/healthz").is_success
        except httpx2.HTTPError:
            return False

    def metrics(self) -> dict[str, float]:
        return parse_metrics(httpx2.get(f"{self.url}/metrics").text)


def write_configuration(
    folder: Path, kubeconfig: Path, port: int, *, name: str = NAME, **changes: Any
) -> Path:
    """The configuration of deploy/scheduler, for a scheduler on this machine. `changes`: of the
    extender's entry."""
    configuration = yaml.safe_load((DEPLOY / "configuration.yaml").read_text())
    configuration["profiles"] = [{"schedulerName": name}]
    configuration["clientConnection"] = {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000}
    configuration["leaderElection"] = {"leaderElect": False}
    for extender in configuration["extenders"]:
        extender.update({"urlPrefix": f"http://127.0.0.1:{port}", **changes})
    made = folder / "configuration.yaml"
    made.write_text(yaml.safe_dump(configuration))
    return made


class KubeScheduler(Program):
    def __init__(self, folder: Path, configuration: Path) -> None:
        program = program_directory("kube-scheduler") / "kube-scheduler"
        self.port = free_port()
        super().__init__(
            folder / "kube-scheduler.log",
            str(program),
            f"--config={configuration}",
            *("--bind-address=127.0.0.1", f"--secure-port={self.port}"),
            "--authorization-always-allow-paths=/readyz,/metrics",
        )

    def is_ready(self) -> bool:
        assert self.is_running(), self.log.read_text()
        try:
            return self._get("/readyz").is_success
        except httpx2.HTTPError:
            return False

    def metrics(self) -> dict[str, float]:
        return parse_metrics(self._get("/metrics").text)

    def _get(self, path: str) -> httpx2.Response:
        """Its certificate is one that it made itself."""
        return httpx2.get(f"https://127.0.0.1:{self.port}{path}", verify=False)


class Pair(NamedTuple):
    """kube-scheduler, and the extender that it asks."""

    scheduler: KubeScheduler
    extender: Extender

    def await_latencies(self, count: int) -> None:
        """Wait until decisions know so many latencies."""
        metric = "clew_scheduler_latencies"
        wait_until(f"{count} latencies count", lambda: self.extender.metrics().get(metric) == count)


@contextmanager
def scheduling(folder: Path, kubeconfig: Path, **changes: Any) -> Iterator[Pair]:
    """kube-scheduler and the extender, until the end of the block."""
    port = free_port()
    with Extender(folder, kubeconfig, port) as extender:
        configuration = write_configuration(folder, kubeconfig, port, **changes)
        with KubeScheduler(folder, configuration) as scheduler:
            yield Pair(scheduler, extender)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with fake_cluster(tmp_path_factory.mktemp("fake") / "cluster") as made:
        yield made


@pytest.fixture(scope="module")
def pair(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with scheduling(tmp_path_factory.mktemp("schedulers"), api.kubeconfig) as made:
        yield made


@pytest.fixture(autouse=True)
def empty(api: Api, pair: Pair) -> Iterator[None]:
    """Leave no nodes and Pods to the next test."""
    yield
    api.clear()
    pair.await_latencies(0)
