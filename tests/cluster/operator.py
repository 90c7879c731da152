"""A real `clew operator` for one namespace, and resources to give it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests import forkserver
from tests.cluster.kube import Kube
from tests.cluster.location import address_for_pods, require_local_cluster
from tests.wait import wait_until
from tools.cluster.binaries import locked
from tools.cluster.images import BUSYBOX

import clew

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
CLEW, JUPYTER, TENSORBOARD = (
    f"docker.io/clew/{name}:{clew.__version__}" for name in ("clew", "jupyter", "tensorboard")
)
SERVER = ["sh", "-c", "mkdir -p /tmp/www && exec httpd -f -p 8888 -h /tmp/www"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


class Operator:
    def __init__(self, kube: Kube, folder: Path, options: tuple[str, ...]) -> None:
        self.kube = kube
        self.namespaces: tuple[str, ...] = ("--namespace", kube.namespace)
        self._folder = folder
        self._options = options
        self._metrics, self._health = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = [
            *self.namespaces,
            *("--metrics-port", str(self._metrics)),
            *("--health-port", str(self._health)),
            *("--allow-from", address_for_pods(self.kube)),  # whose server is on this machine, too
            *self._options,
        ]
        with (self._folder / "operator.log").open("ab") as log:
            self._process = forkserver.Popen(
                [*forkserver.CLEW, "operator", *words],
                env={**os.environ, "KUBECONFIG": self.kube.kubeconfig},
                stdout=log,
                stderr=log,
            )
        wait_until("the operator answers", self.alive)

    def alive(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        try:
            return httpx2.get(f"http://127.0.0.1:{self._health}/healthz").status_code == 200
        except httpx2.HTTPError:
            return False

    def end(self, number: int = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None

    def metrics(self) -> dict[str, float]:
        text = httpx2.get(f"http://127.0.0.1:{self._metrics}/metrics").text
        rows = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in rows}

    def log(self) -> str:
        return (self._folder / "operator.log").read_text()


def is_registered(
    kube: Kube, kinds: str = "notebooks,tensorboards,pvcviewers,tfjobs,pytorchjobs"
) -> bool:
    """Whether resources of all these kinds can be asked for."""
    try:
        kube("get", kinds, "--output=name")
    except AssertionError:
        return False
    return True


_registered: set[str] = set()
"""The clusters that have the kinds of this version."""


@contextmanager
def run_operator(kube: Kube, folder: Path, *options: str) -> Iterator[Operator]:
    everywhere = Kube(kube.kubeconfig)
    if kube.kubeconfig not in _registered or not is_registered(everywhere):
        with locked(Path(tempfile.gettempdir(), f"clew-kinds-{os.getuid()}.lock")):  # others do so
            everywhere("apply", "--kustomize", str(CRDS))
        wait_until("the kinds are known", lambda: is_registered(everywhere))
        _registered.add(kube.kubeconfig)
    made = Operator(kube, folder, options)
    try:
        made.start()
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def operator(
    cluster: Kube, spaces: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """One for all tests of a file: it looks at the namespaces of each."""
    folder = tmp_path_factory.mktemp("operator")
    with run_operator(Kube(cluster.kubeconfig, f"{spaces}-*"), folder) as made:
        yield made


def notebook(name: str = "first", *command: str, **more: Any) -> dict[str, Any]:
    """A Notebook whose server is a small one; `volume` is a claim that it has at /data."""
    volume, version = more.pop("volume", None), more.pop("version", "v1")
    container: dict[str, Any] = {
        "name": name,
        "image": BUSYBOX,
        "command": list(command) or SERVER,
        "readinessProbe": {"tcpSocket": {"port": 8888}, "periodSeconds": 1},
        **more.pop("container", {}),
    }
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        **more.pop("spec", {}),
    }
    if volume is not None:
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}]
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": "Notebook",
        "metadata": {"name": name, **more},
        "spec": {"template": {"spec": spec}},
    }


def claim(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Mi"}},
            **spec,
        },
    }


@contextmanager
def volume(
    kube: Kube, namespace: str, name: str, *, node: str = "", access: str = "ReadWriteOnce"
) -> Iterator[Path]:
    """A folder of this machine as the volume of one claim, until the end of the block: any node
    can have it, or one alone."""
    require_local_cluster(kube)
    folder = Path(f"/tmp/{kube.namespace}")
    folder.mkdir()
    at = {"path": str(folder)}
    on = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    there = {"required": {"nodeSelectorTerms": [{"matchExpressions": [on]}]}}
    made = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": kube.namespace},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": [access],
            "storageClassName": "",
            "claimRef": {"namespace": namespace, "name": name},
            **({"local": at, "nodeAffinity": there} if node else {"hostPath": at}),
        },
    }
    kube.apply(made)
    yield folder
    kube("delete", "persistentvolume", kube.namespace, "--wait=false")
    shutil.rmtree(folder, ignore_errors=True)


def ready_condition(kube: Kube, what: str) -> dict[str, Any]:
    """The condition Ready; empty before there is any."""
    return _ready_condition(kube.get(what))


def _ready_condition(resource: dict[str, Any]) -> dict[str, Any]:
    conditions = resource.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c.get("type") == "Ready"), {})


def reissued_events(kube: Kube, what: str) -> list[dict[str, Any]]:
    """The events of a resource that the operator reissued from its Pods."""
    kind, name = kube.get(what)["kind"], what.partition("/")[2]
    about = f"involvedObject.kind={kind},involvedObject.name={name}"
    found = kube.get("events", "--field-selector", about)["items"]
    return [event for event in found if event["message"].startswith("Reissued from pod/")]


def assert_unmodified(kube: Kube, what: str) -> None:
    """Assert that the operator added nothing to a resource, and reissued events of its Pod."""
    found = kube.get(what)
    assert "finalizers" not in found["metadata"]
    notes = set(found["metadata"]["annotations"])
    assert notes == {"kubectl.kubernetes.io/last-applied-configuration"}
    events = wait_until("events are said again", lambda: reissued_events(kube, what))
    controller = f"{found['kind'].lower()}-controller"
    assert all(event["source"]["component"] == controller for event in events)


def wait_for_reason(kube: Kube, what: str, reason: str) -> dict[str, Any]:
    """Wait until a resource gives this reason; the condition."""
    state = f'jsonpath={{.status.conditions[?(@.type=="Ready")].reason}}={reason}'
    return _ready_condition(json.loads(kube.wait_for(what, state, "--output=json")))
