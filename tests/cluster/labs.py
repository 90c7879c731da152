"""A real Jupyter on the cluster, spoken to through a real `clew server` as its own page does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.cluster.kube import Kube
from tests.cluster.operators import JUPYTER, notebook, ready, until
from tests.cluster.standing import need_here
from tests.driver import Project
from tests.local.serving import Server, serving
from tests.local.test_server_sockets import as_its_page, execute, opened

HOME = "/home/jovyan"
LAST = "clew.dev/last-activity"


@pytest.fixture
def server(kube: Kube, tmp_path: Path) -> Iterator[Server]:
    """The way to whatever runs on the cluster, by the addresses of Services."""
    need_here(kube)
    project = Project(tmp_path / "server", KUBECONFIG=kube.kubeconfig)
    with serving(project, "--on-cluster") as running:
        yield running


def jupyter(name: str = "first", *, home: str = "", **more: Any) -> dict[str, Any]:
    """A Notebook of our image; `home` is a claim that its user has as home."""
    made = notebook(name, container={"image": JUPYTER, **more.pop("container", {})}, **more)
    spec = made["spec"]["template"]["spec"]
    del spec["containers"][0]["command"]
    if home:
        spec["containers"][0]["volumeMounts"] = [{"name": "home", "mountPath": HOME}]
        spec["volumes"] = [{"name": "home", "persistentVolumeClaim": {"claimName": home}}]
    return made


class Lab:
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
        """Takes code, and gives back what it printed."""
        made = self("POST", "kernels", json={"name": "python3"})
        channels = f"{self.base}api/kernels/{made['id']}/channels?session_id=here"
        with opened(self.server, channels, headers={"Origin": self.server.apps}) as socket:
            yield partial(execute, socket)


@contextmanager
def lab(server: Server, kube: Kube, name: str = "first") -> Iterator[Lab]:
    made = Lab(server, kube, name)
    with made.page:
        reached(kube, f"notebook/{name}", made.page, f"{made.base}api")
        yield made


def reached(kube: Kube, what: str, user: httpx2.Client, address: str) -> None:
    """Wait until a resource is ready and answers: every node must first hear of its Service."""
    kube.await_(what, "condition=Ready")
    until(f"{what} answers", lambda: user.get(address).is_success)


def the_idle_is_deleted(kube: Kube, user: httpx2.Client, kind: str, base: str = "") -> None:
    """Of two, `used` and `idle`, the one that is asked for stays; asked no more, it goes, too.
    `base`: what the address of `used` begins with, if that is not its kind."""
    began = datetime.now(UTC)

    def asked() -> None:
        assert user.get(f"/{base or kind}/{kube.namespace}/used/").is_success

    def noted() -> bool:
        asked()
        notes = kube.get(kind, "used")["metadata"]["annotations"]
        return datetime.fromisoformat(notes.get(LAST, "1970-01-01T00:00:00Z")) > began

    def gone() -> bool:
        asked()
        return not kube("get", f"{kind}/idle", "--ignore-not-found")

    until("its use is noted", noted)
    kube("annotate", kind, "--all", "clew.dev/idle-minutes=0.2")
    until("the idle one is deleted", gone)
    assert ready(kube, f"{kind}/used")["status"] == "True"
    until("the other as well", lambda: not kube("get", f"{kind}/used", "--ignore-not-found"))
