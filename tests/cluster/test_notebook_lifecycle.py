"""The whole way of one notebook: worked in, watched, edited, culled, started again, deleted.

Everything is reached through the server, and everything shares one volume, which one node at a time
may hold and any node could reach.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.cluster.jupyter import (  # noqa: F401 - server is a fixture
    JupyterApi,
    jupyter_notebook,
    open_jupyter,
    server,
    wait_until_reachable,
)
from tests.cluster.kube import Kube
from tests.cluster.operator import claim, run_operator, volume, wait_for_reason
from tests.cluster.test_tensorboards import tensorboard
from tests.cluster.test_viewers import node_of, viewer
from tests.local.server import Server
from tests.local.test_server_websockets import opened
from tests.wait import wait_until

pytestmark = pytest.mark.cluster

LAST = "notebooks.kubeflow.org/last-activity"
LIMIT = "clew.dev/idle-minutes"
IDLE = timedelta(seconds=6)

TRAIN = """
import threading, time
from tensorboardX import SummaryWriter
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.graph_pb2 import GraphDef

graph = GraphDef()
graph.node.add(name="picture", op="Placeholder")
graph.node.add(name="dense", op="MatMul", input=["picture"])
writer = SummaryWriter("runs/first")
writer.file_writer.event_writer.add_event(Event(graph_def=graph.SerializeToString()))

def train():
    for step in range(1_000_000):
        writer.add_scalar("loss", 1 / (step + 1), step)
        writer.add_histogram("weights", [step, step + 1.0, step + 2.0], step)
        writer.flush()
        time.sleep(0.5)

threading.Thread(target=train, daemon=True).start()
open("notes.txt", "w").write("learning rate: 0.1")
"""


@pytest.fixture
def home(kube: Kube) -> Iterator[Path]:
    """The folder of a claim that one node alone may hold, whose volume any node could reach."""
    with volume(kube, kube.namespace, "home") as folder:
        os.chown(folder, 1000, 100)
        kube.apply(claim("home", storageClassName="", volumeName=kube.namespace))
        yield folder


def test_the_whole_life_of_a_notebook(
    kube: Kube,
    server: Server,  # noqa: F811
    home: Path,
    nodes: list[str],
    tmp_path: Path,
) -> None:
    looks = ("--culling", "--through-api", "--check-minutes=0.017")
    with run_operator(kube, tmp_path, *looks), server.apps_client() as user:
        kube.apply(jupyter_notebook(home="home", annotations={LIMIT: "never"}))
        with open_jupyter(server, kube) as first, first.kernel() as run:
            run(TRAIN)
            assert (home / "notes.txt").read_text() == "learning rate: 0.1"

            kube.apply(tensorboard("pvc://home/runs"), viewer("home"))
            board = f"/tensorboard/{kube.namespace}/curves"
            files = f"/pvcviewer/{kube.namespace}/files/files"
            wait_until_reachable(kube, "tensorboard/curves", user, f"{board}/")
            wait_until_reachable(kube, "pvcviewer/files", user, f"{files}/")
            where = node_of(kube, "notebook-name=first")
            assert where in nodes
            assert len(nodes) > 1, "no other node was free"
            assert node_of(kube, "app=curves") == where
            assert node_of(kube, "app.kubernetes.io/name=files") == where
            curves_advance(user, board)

            assert user.get(f"{files}/notes.txt").text == "learning rate: 0.1"
            assert user.put(f"{files}/notes.txt", content=b"learning rate: 0.2").is_success
            assert run("print(open('notes.txt').read())") == "learning rate: 0.2\n"

            minutes = IDLE.total_seconds() / 60
            kube("annotate", "notebook/first", "--overwrite", f"{LIMIT}={minutes}")
            goes_on_while_a_kernel_is_busy(kube, first, run)
        with open_jupyter(server, kube) as first:
            goes_on_while_a_terminal_is_busy(kube, server, first)
        wait_for_reason(kube, "notebook/first", "Stopped")
        assert kube("get", "pod/first-0", "--ignore-not-found") == ""

        kube("annotate", "notebook/first", "--overwrite", f"{LIMIT}=never")
        kube("annotate", "notebook/first", "kubeflow-resource-stopped-")
        with open_jupyter(server, kube) as first, first.kernel() as run:
            assert run("print(open('notes.txt').read())") == "learning rate: 0.2\n"
            assert first("GET", "contents/runs/first")["content"]

        # Those that follow the notebook to its node come first: else they look for another one.
        all_three = ("pvcviewer/files", "tensorboard/curves", "notebook/first")
        kube("delete", *all_three, "--cascade=foreground")
        for kind in ("statefulset", "deployment", "replicaset", "service", "pod"):
            assert kube.get(kind)["items"] == []
        assert kube.get("pvc", "home")["status"]["phase"] == "Bound"
        assert (home / "notes.txt").read_text() == "learning rate: 0.2"


def curves_advance(user: httpx2.Client, board: str) -> None:
    """Scalars and histograms of later steps come while it is looked at; the graph is there."""

    def steps(plugin: str, tag: str) -> int:
        place = f"{board}/data/plugin/{plugin}/{plugin}"
        answer = user.get(place, params={"run": "first", "tag": tag})
        return max(point[1] for point in answer.json()) if answer.is_success else -1

    def later(than: int) -> bool:
        return steps("scalars", "loss") > than and steps("histograms", "weights") > than

    wait_until("there are curves", lambda: later(0))
    seen = steps("scalars", "loss")
    wait_until("they advance", lambda: later(seen))
    asked: dict[str, Any] = {"run": "first", "conceptual": "false"}
    graph = user.get(f"{board}/data/plugin/graphs/graph", params=asked).text
    assert 'name: "dense"' in graph


def in_use_for_longer_than_it_may_be_idle(kube: Kube) -> None:
    since = datetime.now(UTC)

    def last() -> datetime:
        notes = kube.get("notebook", "first")["metadata"]["annotations"]
        assert "kubeflow-resource-stopped" not in notes, "it was in use"
        return datetime.fromisoformat(notes[LAST]) if LAST in notes else since

    wait_until("it is still in use", lambda: last() > since + IDLE)


def goes_on_while_a_kernel_is_busy(kube: Kube, first: JupyterApi, run: Any) -> None:
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(run, "time.sleep(3600)")
        in_use_for_longer_than_it_may_be_idle(kube)
        (kernel,) = first("GET", "kernels")
        first("POST", f"kernels/{kernel['id']}/interrupt")
        with pytest.raises(AssertionError, match="KeyboardInterrupt"):
            waits.result()


def goes_on_while_a_terminal_is_busy(kube: Kube, server: Server, first: JupyterApi) -> None:  # noqa: F811
    name = first("POST", "terminals")["name"]
    with opened(server, f"{first.base}terminals/websocket/{name}") as terminal:
        terminal.send('["stdin", "while sleep 1; do date; done\\r"]')
        in_use_for_longer_than_it_may_be_idle(kube)
    first("DELETE", f"terminals/{name}")
