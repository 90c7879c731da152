"""A Jupyter on the cluster, used through a `clew server` as its page uses it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.operator import JUPYTER, notebook, ready_condition
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.local.test_server_websockets import as_its_page, execute, opened
from tests.wait import wait_until

HOME = "/home/jovyan"
LAST_ACTIVITY = "clew.dev/last-activity"


@pytest.fixture
def server(kube: Kube, tmp_path: Path) -> Iterator[Server]:
    """A server that proxies to Services of the cluster."""
    require_local_cluster(kube)
    project = Project(tmp_path / "server", KUBECONFIG=kube.kubeconfig)
    with run_server(project, "--on-cluster") as running:
        yield running


def jupyter_notebook(name: str = "first", *, home: str = "", **more: Any) -> dict[str, Any]:
    """A Notebook of our image; `home` is a claim that its user has as home."""
    made = notebook(name, container={"image": JUPYTER, **more.pop("container", {})}, **more)
    spec = made["spec"]["template"]["spec"]
    del spec["containers"][0]["command"]
    if home:
        spec["containers"][0]["volumeMounts"] = [{"name": "home", "mountPath": HOME}]
        spec["volumes"] = [{"name": "home", "persistentVolumeClaim": {"claimName": home}}]
    return made


class JupyterApi:
    """The API of one notebook."""

    def __init__(self, server: Server, kube: Kube, name: str) -> None:
        self.server = server
        self.base = f"/notebook/{kube.namespace}/{name}/"
        self.page = as_its_page(server)

    def __call__(self, method: str, path: str, **more: Any) -> Any:
        answer = self.page.request(method, f"{self.base}api/{path}", **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    @contextmanager
    def kernel(self) -> Iterator[Callable[[str], str]]:
        """A function that runs code in a kernel and returns its output."""
        made = self("POST", "kernels", json={"name": "python3"})
        channels = f"{self.base}api/kernels/{made['id']}/channels?session_id=here"
        with opened(self.server, channels, headers={"Origin": self.server.apps}) as socket:
            yield partial(execute, socket)


@contextmanager
def open_jupyter(server: Server, kube: Kube, name: str = "first") -> Iterator[JupyterApi]:
    made = JupyterApi(server, kube, name)
    with made.page:
        wait_until_reachable(kube, f"notebook/{name}", made.page, f"{made.base}api")
        yield made


def wait_until_reachable(kube: Kube, what: str, user: httpx2.Client, address: str) -> None:
    """Wait until a resource is ready and answers: every node must first hear of its Service."""
    kube.wait_for(what, "condition=Ready")
    wait_until(f"{what} answers", lambda: user.get(address).is_success)


def assert_idle_deleted(kube: Kube, user: httpx2.Client, kind: str, base: str = "") -> None:
    """Of two resources, `used` and `idle`, the unused one is deleted first.

    `base` starts the address of `used`, if that is not its kind.
    """
    began = datetime.now(UTC)

    def asked() -> None:
        assert user.get(f"/{base or kind}/{kube.namespace}/used/").is_success

    def noted() -> bool:
        asked()
        notes = kube.get(kind, "used")["metadata"]["annotations"]
        return datetime.fromisoformat(notes.get(LAST_ACTIVITY, "1970-01-01T00:00:00Z")) > began

    def gone() -> bool:
        asked()
        return not kube("get", f"{kind}/idle", "--ignore-not-found")

    wait_until("its use is noted", noted)
    kube("annotate", kind, "--all", "clew.dev/idle-minutes=0.2")
    wait_until("the idle one is deleted", gone)
    assert ready_condition(kube, f"{kind}/used")["status"] == "True"
    wait_until("the other as well", lambda: not kube("get", f"{kind}/used", "--ignore-not-found"))
