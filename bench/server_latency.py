"""The response times of the server, and the cost of clients that follow a log.

    python bench/server_latency.py [--edges N] [--runs N] [--followers N] [--seconds N]
                                   [--json FILE]

- the first page of a list of 10,000 runs, as the stock clients request it: the 95th percentile of
  400 requests, in the default order and newest first, of all runs and of one experiment;
- lineage, three steps up or down, over HTTP, in the graph of a long-lived project (that of
  `graph.py`): the 95th percentile of 400 requests about various executions;
- from the request of a run to its first task, by the clock of the task: the median of 20 requests
  one after another, as a user would send them;
- the CPU time of the server while followers receive the output of a task: 200 lines a second each.

Each figure is printed with its target.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import graph as graphs
import httpx2

from clew import db, project_directory, settings
from clew.pipelines.runs import run_queue
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import experiments

CLEW = str(Path(sys.executable).with_name("clew"))
QUESTIONS = 400
AVAILABLE = {"operation": "EQUALS", "key": "storage_state", "stringValue": "AVAILABLE"}
BEGINNINGS, PAUSE = 20, 2.0
PIPELINES = """
from kfp import compiler, dsl

@dsl.component(install_kfp_package=False)
def talk(seconds: float):
    import time
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        print("epoch 3 of 10, loss 0.1234, accuracy 0.9876\\\\n" * 10, end="", flush=True)
        time.sleep(0.05)

@dsl.pipeline(name="talking")
def talking(seconds: float):
    talk(seconds=seconds).set_caching_options(False)

@dsl.component(install_kfp_package=False)
def now(number: int) -> float:
    import time
    return time.time()

@dsl.pipeline(name="beginning")
def beginning(number: int) -> float:
    return now(number=number).output

compiler.Compiler().compile(talking, "talking.yaml")
compiler.Compiler().compile(beginning, "beginning.yaml")
"""


@dataclass(frozen=True)
class Server:
    address: str
    token: str
    pid: int

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.address, headers=self.headers, timeout=120)

    def cpu(self) -> float:
        """Seconds that the server itself has worked; those who run pipelines are others."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(root: Path) -> Iterator[Server]:
    command = [CLEW, "server", "--port", "0"]
    with (
        open(root / "server.log", "w") as log,
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=log, text=True) as made,
    ):
        try:
            assert made.stdout is not None
            said = urlsplit(made.stdout.readline().strip())
            token = parse_qs(said.query)["token"][0]
            yield Server(f"{said.scheme}://{said.netloc}", token, made.pid)
        finally:
            made.terminate()
            made.wait()


def listing(root: Path, count: int) -> dict[str, float]:
    """Milliseconds."""
    project = project_directory.create(root)
    begin = time.time_ns()
    spec = json.dumps({"pipelineInfo": {"name": "many"}, "root": {"dag": {"tasks": {}}}})
    with db.connect(project.graph, address=None) as connection:
        graph = Graph(connection, project.uid)
        homes = [experiments.create(graph, f"experiment {number}") for number in range(10)]

        def fill() -> None:
            for number in range(count):
                given = {"parameters": {"rate": number / count, "epochs": 10}}
                name = f"training {number}"
                home = homes[number % len(homes)]
                run_queue.insert_run(
                    graph, run_queue.NewRun(experiment=home, name=name, spec=spec, config=given)
                )
            connection.rows("UPDATE run_request SET state = 'succeeded', finished = ?", (begin,))

        connection.atomically(fill)
    ways: list[dict[str, str]] = [
        {},
        {"page_size": "100", "sort_by": "created_at desc"},
        {"experiment_id": homes[3], "sort_by": "created_at desc"},
        {"filter": json.dumps({"predicates": [AVAILABLE]}), "sort_by": "created_at desc"},
    ]
    took = []
    with serving(root) as server, server.client() as client:
        for number in range(QUESTIONS):
            begin = time.perf_counter_ns()
            found = client.get("/apis/v2beta1/runs", params=ways[number % len(ways)])
            took.append((time.perf_counter_ns() - begin) / 1e6)
            assert len(found.json()["runs"]) >= min(count // len(homes), 20), found.text
    cut = statistics.quantiles(took, n=20)
    return {"runs": count, "median_ms": statistics.median(took), "p95_ms": cut[18]}


def lineage(root: Path, edges: int) -> dict[str, float]:
    """Milliseconds."""
    project = project_directory.create(root)
    graphs.MACHINE = settings.machine_id(settings.load())
    count = edges // graphs.EDGES
    with db.connect(project.graph, address=None) as connection:
        graph = Graph(connection, project.uid)
        for i in range(count):
            graph.fold(graphs.told(i))
    chosen = random.Random(1)
    took = []
    with serving(root) as server, server.client() as client:
        for number in range(QUESTIONS):
            i = chosen.randrange(2, count - 1)
            target = f"e{i + 1}:/home/u/p/out-{i}-{chosen.randrange(graphs.WRITES)}"
            asked = {"target": target, "direction": ("up", "down")[number % 2], "depth": 3}
            begin = time.perf_counter()
            found = client.get("/api/v1/lineage", params=asked)
            took.append((time.perf_counter() - begin) * 1000)
            assert found.status_code == 200, found.text
            assert len(found.json()["nodes"]) > 1, found.text
    cut = statistics.quantiles(took, n=20)
    return {"edges": count * graphs.EDGES, "median_ms": statistics.median(took), "p95_ms": cut[18]}


def compiled(root: Path, name: str) -> str:
    """One of the pipelines above, by the stock SDK."""
    project_directory.create(root)
    (root / "source.py").write_text(PIPELINES)
    subprocess.run([sys.executable, "-W", "ignore", "source.py"], cwd=root, check=True)
    return (root / f"{name}.yaml").read_text()


def beginning(root: Path) -> dict[str, float]:
    """Milliseconds."""
    spec = compiled(root, "beginning")
    took = []
    with serving(root) as server, server.client() as client:
        for number in range(BEGINNINGS + 1):
            time.sleep(PAUSE)
            asked = {"spec": spec, "parameters": {"number": number}}
            begin = time.time()
            uid = client.post("/api/v1/runs", json=asked).json()["uid"]
            while (found := client.get(f"/api/v1/runs/{uid}").json())["state"] != "succeeded":
                assert found["state"] in ("pending", "running"), found
                time.sleep(0.05)
            took.append((found["outputs"]["Output"] - begin) * 1000)
    took = took[1:]  # the first stores what every run reads
    cut = statistics.quantiles(took, n=20)
    return {"median_ms": statistics.median(took), "p95_ms": cut[18]}


def following(root: Path, followers: int, seconds: float) -> dict[str, float]:
    """Cores."""
    spec = compiled(root, "talking")
    with serving(root) as server, server.client() as client:
        asked = {"spec": spec, "parameters": {"seconds": seconds + 20}}
        uid = client.post("/api/v1/runs", json=asked).json()["uid"]
        while "epoch" not in client.get(f"/api/v1/tasks/{uid}/talk/log").text:
            time.sleep(0.1)
        found = asyncio.run(_follow(server, uid, followers, seconds))
        client.post(f"/api/v1/runs/{uid}/cancel")
        while client.get(f"/api/v1/runs/{uid}").json()["state"] in ("pending", "running"):
            time.sleep(0.1)
    return found


async def _follow(server: Server, uid: str, followers: int, seconds: float) -> dict[str, float]:
    heard = [0] * followers
    tasks = [asyncio.create_task(_listen(server, uid, heard, n)) for n in range(followers)]
    while not all(heard):
        await asyncio.sleep(0.05)
    begin, before, bytes_before = time.perf_counter(), server.cpu(), sum(heard)
    await asyncio.sleep(seconds)
    wall = time.perf_counter() - begin
    cores, bytes_heard = (server.cpu() - before) / wall, sum(heard) - bytes_before
    for task in tasks:
        task.cancel()
    return {"cores": cores, "bytes_per_s": bytes_heard / wall, "least": min(heard)}


async def _listen(server: Server, uid: str, heard: list[int], number: int) -> None:
    at = urlsplit(server.address)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    writer.write(
        f"GET /api/v1/tasks/{uid}/talk/log HTTP/1.1\r\nHost: {at.netloc}\r\n"
        f"Accept: text/event-stream\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()
    )
    while data := await reader.read(1 << 16):
        heard[number] += len(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--followers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    for name in [n for n in os.environ if n.startswith("CLEW_")]:
        del os.environ[name]
    print(f"load of the machine at the beginning: {os.getloadavg()[0]:.2f}\n")
    print("| what | measured | target | |\n| --- | --- | --- | --- |")
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as name:
        home = Path(name)
        figures["listing"] = found = listing(home / "listing", options.runs)
        line(f"first page of {found['runs']:,} runs, over HTTP, p95 in ms", found["p95_ms"], 50)
        figures["lineage"] = found = lineage(home / "lineage", options.edges)
        what = f"lineage of depth 3 among {found['edges']:,} edges, over HTTP, p95 in ms"
        line(what, found["p95_ms"], 150)
        figures["beginning"] = found = beginning(home / "beginning")
        line("from asking for a run to its first task, ms", found["median_ms"], 200)
        figures["following"] = found = following(
            home / "following", options.followers, options.seconds
        )
        line(f"{options.followers} followers of a log, cores of the server", found["cores"], 1)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


def line(what: str, measured: float, must: float) -> None:
    print(f"| {what} | {measured:.3g} | {must:g} | {'ok' if measured <= must else 'MISSED'} |")


if __name__ == "__main__":
    main()
