"""The routes of Kubeflow's web apps and our own, of a server with no rights but deploy/server's.

Everything is created at once and then looked at, since most of the time passes in the starts of
containers.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient
from tests.cluster.deployment import act_as_service_account, render
from tests.cluster.kube import Kube
from tests.cluster.operator import operator  # noqa: F401 - a fixture
from tests.cluster.test_resource_backend import connect
from tests.unit.server.served_project import BEARER, serve_project
from tests.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

MISSING_IMAGE = "registry.invalid/none:1"
VOLUME = {"mode": "ReadWriteOnce", "class": "{empty}", "size": "10Mi", "type": "empty"}
KEY = {"Idempotency-Key": "only-once"}


class Apps:
    """The three apps, in one namespace."""

    def __init__(self, client: TestClient, namespace: str) -> None:
        self.client = client
        self.notebooks = f"/jupyter/api/namespaces/{namespace}/notebooks"
        self.boards = f"/tensorboards/api/namespaces/{namespace}/tensorboards"
        self.volumes = f"/volumes/api/namespaces/{namespace}/pvcs"
        self.viewers = f"/volumes/api/namespaces/{namespace}/viewers"
        self.details = f"/api/v1/namespaces/{namespace}"

    def post(self, path: str, body: dict[str, Any], **options: Any) -> None:
        answer = self.client.post(path, json=body, **options)
        assert answer.status_code == 200, answer.text

    def get(self, path: str) -> dict[str, Any]:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def item(self, path: str, name: str) -> dict[str, Any]:
        """The entry of a list; empty if there is none."""
        (items,) = (value for value in self.get(path).values() if isinstance(value, list))
        return next((one for one in items if one["name"] == name), {})

    def status(self, path: str, name: str) -> dict[str, str]:
        found: dict[str, str] = self.item(path, name)["status"]
        return found

    def phase(self, path: str, name: str) -> str:
        return self.status(path, name)["phase"]


@pytest.fixture
def apps(kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apps]:
    rules = render(kube)
    folder = tmp_path_factory.mktemp("account")
    with act_as_service_account(kube, rules, "clew-server", folder, everywhere=True) as account:
        backend = connect(account, kube.namespace)
        with serve_project(tmp_path_factory.mktemp("project"), backend) as served:
            served.client.headers.update(BEARER)
            yield Apps(served.client, kube.namespace)
        backend.close()


def test_what_users_do_in_the_three_apps(kube: Kube, apps: Apps) -> None:
    info = apps.get("/api/v1/backend")
    assert (info["kind"], info["namespaces"]) == ("cluster", [kube.namespace])
    assert apps.get("/jupyter/api/namespaces")["namespaces"] == [kube.namespace]
    default = apps.get("/volumes/api/storageclasses/default")["defaultStorageClass"]
    assert default in apps.get("/jupyter/api/storageclasses")["storageClasses"]

    home = apps.get("/jupyter/api/config")["config"]["workspaceVolume"]["value"]
    home["newPvc"]["spec"]["resources"]["requests"]["storage"] = "10Mi"
    body = {"name": "mine", "cpu": "100m", "memory": "128Mi", "memoryLimit": "1Gi"}
    for _ in range(2):
        apps.post(apps.notebooks, {**body, "workspace": home}, headers=KEY)
    taken = apps.client.post(apps.notebooks, json=body)
    assert (taken.status_code, taken.json()["success"]) == (409, False)
    apps.post(apps.notebooks, {"name": "broken", "customImage": MISSING_IMAGE, "cpu": "100m"})
    apps.post(apps.volumes, {"name": "data", **VOLUME}, headers=KEY)
    apps.post(apps.viewers, {"name": "data"})
    apps.post(apps.boards, {"name": "curves", "logspath": "pvc://data/runs"})

    a_missing_image_is_named(apps)
    wait_until("the notebook runs", lambda: apps.phase(apps.notebooks, "mine") == "ready")
    an_open_notebook_is_described(apps)
    wait_until("the board runs", lambda: apps.phase(apps.boards, "curves") == "ready")

    def volume() -> dict[str, Any]:
        return apps.item(apps.volumes, "data")

    wait_until("the viewer runs", lambda: volume()["viewer"]["status"] == "ready")
    assert volume()["status"]["phase"] == "ready"
    assert volume()["viewer"]["url"] == f"/pvcviewers/{kube.namespace}/data/"
    assert volume()["class"] == default
    again = {"logspath": "pvc://data/runs/"}
    opened = apps.client.post(f"{apps.details}/open-tensorboard", json=again).json()
    assert (opened["name"], opened["created"]) == ("curves", False)
    refused = apps.client.delete(f"{apps.volumes}/data")
    assert (refused.status_code, refused.json()["title"]) == (
        409,
        "the volume data is used by curves",
    )
    assert apps.client.patch(f"{apps.notebooks}/mine", json={"stopped": True}).is_success
    everything_is_deleted(apps)


def a_missing_image_is_named(apps: Apps) -> None:
    wait_until(
        "the list says why it does not start",
        lambda: "image" in apps.status(apps.notebooks, "broken")["message"].lower(),
    )
    status = apps.status(apps.notebooks, "broken")
    assert status["phase"] == "warning"
    assert MISSING_IMAGE in status["message"]
    details = apps.get(f"{apps.details}/notebooks/broken")
    assert details["message"] == status["message"]
    assert any(event["type"] == "Warning" for event in details["events"])
    assert details["containers"][0]["state"] == "waiting"


def an_open_notebook_is_described(apps: Apps) -> None:
    item = apps.item(apps.notebooks, "mine")
    assert item["status"] == {"phase": "ready", "message": "Running", "state": "Running"}
    assert (item["cpu"], item["memory"]) == ("100m", "128Mi")
    assert "mine-workspace" in item["volumes"]
    assert apps.item(apps.volumes, "mine-workspace")["notebooks"] == ["mine"]
    details = apps.get(f"{apps.details}/notebooks/mine")
    assert ("Ready", "True") in {(one["type"], one["status"]) for one in details["conditions"]}
    [container] = details["containers"]
    assert (container["name"], container["ready"]) == ("mine", True)
    pod = apps.get(f"{apps.notebooks}/mine/pod")["pod"]["metadata"]["name"]
    path = f"{apps.notebooks}/mine/pod/{pod}/logs"
    lines = wait_until("it prints something", lambda: apps.get(path)["logs"])
    log = apps.client.get(f"{apps.details}/notebooks/mine/containers/mine/log").text
    assert log.splitlines()[: len(lines)] == lines

    edited = yaml.safe_load(details["yaml"])
    edited["metadata"]["labels"]["team"] = "vision"
    put = f"{apps.details}/notebooks/mine/yaml"
    changed = apps.client.put(put, json={"yaml": yaml.safe_dump(edited)})
    assert changed.is_success, changed.text
    assert "vision" in changed.json()["yaml"]


def everything_is_deleted(apps: Apps) -> None:
    wait_until("it is stopped", lambda: apps.phase(apps.notebooks, "mine") == "stopped")
    for path in (f"{apps.notebooks}/mine", f"{apps.notebooks}/broken", f"{apps.boards}/curves"):
        assert apps.client.delete(path).is_success, path
    for path in (apps.notebooks, apps.boards):
        wait_until("they are gone", lambda path=path: not any(map(len, lists(apps.get(path)))))

    # The viewer is deleted with its volume.
    for name in ("data", "mine-workspace"):
        wait_until(
            "no Pod has it", lambda n=name: apps.client.delete(f"{apps.volumes}/{n}").is_success
        )
    wait_until("the volumes are gone", lambda: not apps.get(apps.volumes)["pvcs"])


def lists(found: dict[str, Any]) -> list[list[Any]]:
    return [value for value in found.values() if isinstance(value, list)]
