"""The agent over a real network path, without a cluster."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.network_path import PORT, NetworkPath
from tests.wait import wait_until

from clew.agents.latency import latency_agent, targets
from clew.agents.latency.latency_agent import LatencyAgent
from clew.kube.latency.node_latency import AskedNode, Spec
from clew.kube.objects import Json

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")

HOME, FAR, PEER = "10.99.0.2", "10.99.0.3", "10.99.0.4"


class Published:
    """Takes what the agent publishes, as the API server does."""

    def __init__(self) -> None:
        self.status: Json = {}
        self.count = 0
        self.failing = False

    def __call__(self, status: Json) -> str | None:
        if self.failing:
            return "away"
        self.status = status["status"]
        self.count += 1
        return None

    def ms(self, name: str, kind: str = "locations") -> float | None:
        found = self.status.get(kind, ())
        return next((one["ms"] for one in found if one["name"] == name), None)


@pytest.fixture
def path() -> Iterator[NetworkPath]:
    with NetworkPath() as made:
        for address in (HOME, FAR, PEER):
            made.set_distance(address, 5)
        yield made


@pytest.fixture
def published() -> Published:
    return Published()


@pytest.fixture
def agent(
    path: NetworkPath, published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LatencyAgent]:
    for pause in ("_RETRY_SECONDS", "_READ_SECONDS", "_LEAST_PAUSE_SECONDS"):
        monkeypatch.setattr(latency_agent, pause, 0.1)
    monkeypatch.setattr(targets, "_REPEAT_SECONDS", 0.1)
    (tmp_path / "HOME").write_text(f"{HOME}:{PORT}")
    (tmp_path / "FAR").write_text(FAR)
    agent = LatencyAgent("own", tmp_path, published, interval=1.0)
    stopping = threading.Event()

    def run() -> None:
        with path.entered():
            agent.run(stopping)

    thread = threading.Thread(target=run)
    thread.start()
    yield agent
    stopping.set()
    agent.stop()
    thread.join()


def test_latencies_are_published_once_all_are_known_and_when_they_change(
    agent: LatencyAgent, published: Published, path: NetworkPath
) -> None:
    wait_until("it publishes", lambda: published.count)
    assert {one["name"] for one in published.status["locations"]} == {"HOME", "FAR"}
    first = published.ms("HOME")
    assert first is not None
    assert first >= 5
    path.set_distance(HOME, 60)
    wait_until("the change is published", lambda: (published.ms("HOME") or 0) >= 60)


def test_a_location_that_does_not_answer_is_unreachable(
    agent: LatencyAgent, published: Published, tmp_path: Path, path: NetworkPath
) -> None:
    wait_until("it publishes", lambda: published.count)
    (tmp_path / "HOME").write_text(f"{HOME}:{PORT + 1}")
    wait_until("it is missing", lambda: published.status["unreachable"] == ["HOME"])
    assert published.ms("HOME") is None
    failed = agent.metrics.probes.labels("location", "refused")._value.get()
    assert failed >= 3


def test_other_nodes_are_measured_when_they_are_asked_for(
    agent: LatencyAgent, published: Published
) -> None:
    wait_until("it publishes", lambda: published.count)
    asked = [AskedNode("peer", PEER), AskedNode("name", "localhost"), AskedNode("own", HOME)]
    agent.ask(Spec(locations=["UNKNOWN"], nodes=asked))
    wait_until("the peer is known", lambda: published.ms("peer", "nodes"))
    assert [one["name"] for one in published.status["nodes"]] == ["peer"]


def test_what_could_not_be_published_is_published_later(
    agent: LatencyAgent, published: Published, path: NetworkPath
) -> None:
    wait_until("it publishes", lambda: published.count)
    published.failing = True
    path.set_distance(HOME, 60)
    failed = agent.metrics.publications.labels("failed")
    wait_until("it failed", failed._value.get)
    published.failing = False
    wait_until("it is published", lambda: (published.ms("HOME") or 0) >= 60)
