"""The requests of upstream's three front ends, in their order: with the cookie of a page, its CSRF
token, and the bodies that their forms send."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.server.served_project import ORIGIN, TOKEN, Served
from tests.wait import wait_until

from clew.server.kubeflow.csrf import COOKIE, HEADER

SPACE = "api/namespaces/local"


class FrontEnd:
    """A page of one of the apps, in the browser of a user who is logged in."""

    def __init__(self, browser: TestClient, app: str) -> None:
        self._browser, self._app = browser, app

    def ask(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        headers = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin", "Accept": "application/json"}
        headers[HEADER] = self._browser.cookies[COOKIE]
        answer = self._browser.request(
            method, f"/{self._app}/{path}", headers=headers, json=body or None
        )
        found: dict[str, Any] = answer.json()
        assert (answer.status_code, found["success"], found["status"]) == (200, True, 200), found
        return found

    def names(self, path: str, field: str) -> list[str]:
        return [one["name"] for one in self.ask("GET", path)[field]]


@pytest.fixture
def browser(served: Served) -> Iterator[TestClient]:
    with TestClient(served.client.app, base_url=ORIGIN) as found:
        assert found.get(f"/?token={TOKEN}").status_code == 200
        yield found


def test_jupyter(browser: TestClient) -> None:
    page = FrontEnd(browser, "jupyter")
    assert "user" in page.ask("GET", "info")
    assert page.ask("GET", "api/namespaces")["namespaces"] == ["local"]
    config = page.ask("GET", "api/config")["config"]
    for path in ("api/gpus", f"{SPACE}/poddefaults", f"{SPACE}/pvcs", "api/storageclasses/default"):
        page.ask("GET", path)
    notebooks = f"{SPACE}/notebooks"
    page.ask(
        "POST",
        notebooks,
        name="front",
        namespace="local",
        image=config["image"]["value"],
        customImage="",
        customImageCheck=False,
        allowCustomImage=True,
        imagePullPolicy="IfNotPresent",
        serverType="jupyter",
        cpu=0.5,
        cpuLimit=0.6,
        memory="1Gi",
        memoryLimit="1.2Gi",
        gpus={"num": "none", "vendor": ""},
        tolerationGroup="none",
        affinityConfig="none",
        configurations=[],
        shm=True,
        datavols=[],
        environment="{}",
    )
    assert "front" in page.names(notebooks, "notebooks")
    assert page.ask("GET", f"{notebooks}/front")["notebook"]["processed_status"]
    page.ask("GET", f"{notebooks}/front/events")
    page.ask("PATCH", f"{notebooks}/front", stopped=True)
    page.ask("PATCH", f"{notebooks}/front", stopped=False)
    page.ask("DELETE", f"{notebooks}/front")
    wait_until("it is gone", lambda: "front" not in page.names(notebooks, "notebooks"))


def test_volumes_and_tensorboards(browser: TestClient) -> None:
    volumes, boards = FrontEnd(browser, "volumes"), FrontEnd(browser, "tensorboards")
    for path in ("api/namespaces", "api/storageclasses", "api/storageclasses/default"):
        volumes.ask("GET", path)
    claims = f"{SPACE}/pvcs"
    form = {"mode": "ReadWriteOnce", "class": "{empty}", "size": "10Gi", "type": "empty"}
    volumes.ask("POST", claims, name="front", **form)
    assert "front" in volumes.names(claims, "pvcs")
    volumes.ask("POST", f"{SPACE}/viewers", name="front")
    volumes.ask("GET", f"{claims}/front/pods")
    volumes.ask("DELETE", f"{SPACE}/viewers/front")

    assert "front" in boards.ask("GET", claims)["pvcs"]
    boards.ask("GET", f"{SPACE}/poddefaults")
    path = f"{SPACE}/tensorboards"
    boards.ask("POST", path, name="front", logspath="pvc://front/logs/", configurations=[])
    assert boards.names(path, "tensorboards") == ["front"]
    boards.ask("DELETE", f"{path}/front")
    wait_until("it is gone", lambda: not boards.names(path, "tensorboards"))
    volumes.ask("DELETE", f"{claims}/front")
    wait_until("so is the volume", lambda: "front" not in volumes.names(claims, "pvcs"))
