"""Scheduling goes on whatever happens to the extender, and decisions follow what changes."""

import base64
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from tests.cluster.concurrency import OWN_CLUSTER
from tests.cluster.kube import Kube
from tests.cluster.operator import free_port
from tests.cluster.schedulers import (  # fixtures among them
    DEPLOY,
    SOURCE,
    Api,
    Extender,
    KubeScheduler,
    Pair,
    api,
    empty,
    make_pod,
    pair,
    write_configuration,
)
from tests.wait import wait_until

__all__ = ["api", "empty", "pair"]
pytestmark = [pytest.mark.cluster, OWN_CLUSTER]

NODES = {"near": {"HOME": 1}, "far": {"HOME": 99}}
GARBAGE = [
    b"",
    b"garbage",
    b"[]",
    b"{}",
    b'{"NodeNames":["no such node"]}',
    b'{"NodeNames":{"a":1},"Error":7}',
    b'[{"Host":"no such node","Score":10}]',
    b'[{"Host":"far","Score":"much"}]',
    b'{"Error":"no"}',
]


def test_pods_are_scheduled_while_the_extender_is_killed_or_stopped(api: Api, pair: Pair) -> None:
    api.add_nodes(NODES)
    pair.await_latencies(2)
    pair.extender.kill()
    api.add_pods(*(make_pod(f"killed-{n}", "HOME") for n in range(3)))
    api.wait_for_placements(3)
    pair.extender.start()
    api.add_pods(*(make_pod(f"again-{n}", "HOME") for n in range(5)))
    placed = api.wait_for_placements(8)
    assert {node for name, node in placed.items() if name.startswith("again")} == {"near"}
    pair.extender.process.send_signal(signal.SIGSTOP)  # it accepts connections, and never answers
    api.add_pods(make_pod("stopped", "HOME"))
    api.wait_for_placements(9)
    pair.extender.process.send_signal(signal.SIGCONT)
    api.add_pods(*(make_pod(f"awake-{n}", "HOME") for n in range(5)))
    placed = api.wait_for_placements(14)
    assert {node for name, node in placed.items() if name.startswith("awake")} == {"near"}


@contextmanager
def serving_garbage() -> Iterator[int]:
    """A server that gives each kind of garbage in turn; its port."""

    class Answer(BaseHTTPRequestHandler):
        count = 0

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = GARBAGE[Answer.count % len(GARBAGE)]
            Answer.count += 1
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_pods_are_scheduled_while_the_extender_answers_garbage(api: Api, tmp_path: Path) -> None:
    with serving_garbage() as port:
        written = write_configuration(tmp_path, api.kubeconfig, port, name="garbage")
        with KubeScheduler(tmp_path, written):
            api.add_nodes(NODES)
            count = 3 * len(GARBAGE)
            api.add_pods(*(make_pod(f"p{n}", "HOME", scheduler="garbage") for n in range(count)))
            api.wait_for_placements(count)


def test_decisions_follow_nodes_and_latencies(api: Api, pair: Pair) -> None:
    api.add_nodes({"a": {"HOME": 10}, "b": {"HOME": 20}})
    number = iter(range(1000))

    def place() -> str:
        """Where the next Pod goes."""
        name = f"p{next(number)}"
        api.add_pods(make_pod(name, "HOME"))
        return str(wait_until(f"{name} has a node", lambda: api.placements().get(name)))

    wait_until("the first nodes count", lambda: place() == "a")
    api.patch("/api/v1/nodes/b", {"metadata": {"labels": {"HOME": "5"}}})
    wait_until("a label that changed counts", lambda: place() == "b")
    api.add_nodes({"c": {"HOME": "0.5ms"}})
    wait_until("a new node counts", lambda: place() == "c")
    api.patch("/api/v1/nodes/c", {"metadata": {"labels": {"HOME": None}}})
    wait_until("a label that was removed does not count", lambda: place() == "b")
    api.http.delete("/api/v1/nodes/b").raise_for_status()
    wait_until("a node that is gone does not count", lambda: place() == "a")


def test_decisions_follow_after_an_outage_of_the_api_server(api: Api, pair: Pair) -> None:
    api.add_nodes(NODES)
    tool = (sys.executable, "-m", "tools.cluster", "--folder", str(api.kubeconfig.parent))
    failures = 'clew_scheduler_watch_failures_total{kind="Node"}'
    before = pair.extender.metrics().get(failures, 0)
    subprocess.run([*tool, "stop", "kube-apiserver", "--signal", "KILL"], cwd=SOURCE, check=True)
    wait_until(
        "the watch has ended", lambda: pair.extender.metrics().get(failures, 0) >= before + 2
    )
    subprocess.run([*tool, "start", "kube-apiserver"], cwd=SOURCE, check=True)
    wait_until("the API server is ready", lambda: is_ready(api))
    api.patch("/api/v1/nodes/far", {"metadata": {"labels": {"HOME": "0.1"}}})
    names = iter(f"p{n}" for n in range(1000))

    def place() -> str:
        name = next(names)
        api.add_pods(make_pod(name, "HOME"))
        return str(wait_until(f"{name} has a node", lambda: api.placements().get(name)))

    wait_until("decisions follow", lambda: place() == "far")


def is_ready(api: Api) -> bool:
    try:
        return api.http.get("/readyz").is_success
    except httpx2.HTTPError:
        return False


def test_the_account_of_the_manifests_is_enough_over_https(api: Api, tmp_path: Path) -> None:
    kube = Kube(str(api.kubeconfig), "clew-scheduler")
    kube("apply", "--kustomize", str(DEPLOY))
    token = kube("create", "token", "clew-scheduler")
    settings = json.loads(api.kubeconfig.read_text())
    settings["users"][0]["user"] = {"token": token.strip()}
    own = tmp_path / "kubeconfig"
    own.write_text(json.dumps(settings))
    issued = api.kubeconfig.parent / "certificates"
    authority, certificate, key = (issued / n for n in ("ca.crt", "proxy.crt", "proxy.key"))
    port = free_port()
    options = ("--certificate", certificate, "--key", key, "--client-ca", authority)
    tls = {
        "serverName": "proxy",
        "caData": base64.b64encode(authority.read_bytes()).decode(),
        "certFile": str(certificate),
        "keyFile": str(key),
    }
    changes = {"urlPrefix": f"https://127.0.0.1:{port}", "enableHTTPS": True, "tlsConfig": tls}
    written = write_configuration(tmp_path, own, port, name="secure", **changes)
    with (
        Extender(tmp_path, own, port, *map(str, options)) as extender,
        KubeScheduler(tmp_path, written) as scheduler,
    ):
        api.add_nodes(NODES)
        Pair(scheduler, extender).await_latencies(2)
        limit = {"latency.clew.dev/max-ms": "0.5"}
        api.add_pods(
            make_pod("near", "HOME", scheduler="secure"),
            make_pod("limited", "HOME", scheduler="secure", annotations=limit),
        )
        assert api.wait_for_placements(1) == {"near": "near"}
        api.event("near", "PlacedByLatency")
        condition = wait_until("it says why", lambda: find_condition(api, "limited"))
        assert "the nearest is near with 1 ms" in condition["message"]


def find_condition(api: Api, pod: str) -> dict[str, str] | None:
    conditions = api.pods()[pod]["status"].get("conditions", [])
    found = (c for c in conditions if c["type"] == "latency.clew.dev/WithinLimit")
    return next(found, None)
