"""Details of workloads, and changes to them."""

from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient
from tests.unit.server.served_project import Served
from tests.wait import wait_until

NOTEBOOKS = "/jupyter/api/namespaces/local/notebooks"
V1 = "/api/v1/namespaces/local"
OTHER_IMAGE = """
kind: Notebook
metadata: {name: mine}
spec: {template: {spec: {containers: [{name: mine, image: evil}]}}}
"""


@pytest.fixture(scope="module")
def notebook(api: TestClient) -> str:
    body = {"name": "mine", "environment": {"A": "1"}, "configurations": []}
    assert api.post(NOTEBOOKS, json=body).is_success
    wait_until("it runs", lambda: api.get(f"{V1}/notebooks/mine").json()["phase"] == "ready")
    return f"{V1}/notebooks/mine"


def container(served: Served) -> dict[str, Any]:
    [found] = served.backend.list("Notebook", "local")
    return dict(found["spec"]["template"]["spec"]["containers"][0])


def test_the_back_end_and_its_features(api: TestClient) -> None:
    found = api.get("/api/v1/backend").json()
    assert (found["kind"], found["namespaces"], found["namespace"]) == ("local", ["local"], "local")
    assert found["features"]["snapshots"] is False
    assert {one["name"] for one in found["programs"]} == {"jupyterlab", "tensorboard"}
    assert (found["spawner_error"], found["apps_origin"], found["apps_port"]) == (None, None, None)
    classes = api.get("/api/v1/storage-classes").json()["storage_classes"]
    assert classes == [{"name": "directory", "default": True}]
    assert api.get(f"{V1}/snapshots").json() == {"snapshots": []}


def test_without_a_back_end_its_routes_say_so(api: TestClient, served: Served) -> None:
    backend = served.backend
    served.service.backend = None
    try:
        found = api.get("/api/v1/backend").json()
        assert (found["kind"], found["namespaces"], found["programs"]) == ("none", [], [])
        missing = api.get("/jupyter/api/namespaces")
        assert (missing.status_code, missing.json()["hint"]) == (404, "clew up")
        assert api.get("/jupyter/api/config").status_code == 404
    finally:
        served.service.backend = backend


def test_details_say_how_it_is(api: TestClient, notebook: str) -> None:
    found = api.get(notebook).json()
    assert (found["kind"], found["url"]) == ("notebooks", "/notebook/local/mine/")
    [ready] = [one for one in found["conditions"] if one["type"] == "Ready"]
    assert (ready["status"], ready["reason"]) == ("True", "Running")
    assert found["events"][0]["reason"] == "Started"
    [one] = found["containers"]
    assert (one["name"], one["state"], one["ready"]) == ("mine", "running", True)
    assert yaml.safe_load(found["yaml"])["spec"]["template"]["spec"]["containers"]


def test_a_form_changes_the_given_fields_only(
    api: TestClient, served: Served, notebook: str
) -> None:
    before = container(served)
    changed = api.patch(notebook, json={"cpu": "2", "environment": {"B": "2"}, "idleMinutes": 90})
    assert changed.is_success, changed.text
    after = container(served)
    assert after["env"] == [{"name": "B", "value": "2"}]
    assert after["resources"]["requests"] == {**before["resources"]["requests"], "cpu": "2"}
    assert after["image"] == before["image"]
    [item] = api.get(NOTEBOOKS).json()["notebooks"]
    assert item["idle_minutes"] == "90"
    for body in ({"cpu": "none"}, {"image": "evil"}, {"stopped": "yes"}):
        assert api.patch(notebook, json=body).status_code == 400, body
    assert container(served) == after


def test_stopping_twice_is_the_same(api: TestClient, notebook: str) -> None:
    for _ in range(2):
        assert api.patch(notebook, json={"stopped": True}).is_success
    wait_until("it has stopped", lambda: api.get(notebook).json()["phase"] == "stopped")
    wait_until("its process has ended", lambda: not api.get(notebook).json()["containers"])
    assert api.get(f"{notebook}/containers/mine/log").status_code == 404
    for _ in range(2):
        assert api.patch(notebook, json={"stopped": False}).is_success
    wait_until("it runs", lambda: api.get(notebook).json()["phase"] == "ready")


def test_edited_yaml_is_taken_back(api: TestClient, served: Served, notebook: str) -> None:
    text = api.get(notebook).json()["yaml"]
    edited = yaml.safe_load(text)
    edited["metadata"]["labels"]["team"] = "vision"
    changed = api.put(f"{notebook}/yaml", json={"yaml": yaml.safe_dump(edited), "base": text})
    assert changed.is_success, changed.text
    assert yaml.safe_load(changed.json()["yaml"])["metadata"]["labels"]["team"] == "vision"
    stale = api.put(f"{notebook}/yaml", json={"yaml": text, "base": text})
    assert (stale.status_code, stale.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- a list", "one document"),
        ("{", "YAML"),
        ("a: *b", "refers to nothing"),
        ("[" * 500, "nested"),
        ("kind: Notebook\nmetadata: {name: other}\nspec: {}", "cannot be changed"),
        ("kind: Notebook\nmetadata: {name: mine, namespace: other}\nspec: {}", "cannot be changed"),
        ("kind: Notebook\nmetadata: {name: mine, labels: {a: 1}}\nspec: {}", "labels"),
        ("kind: Notebook\nmetadata: {name: mine}", "spec is missing"),
        ("kind: Notebook\nmetadata: {name: mine}\nspec: {template: 3}", "containers"),
        (OTHER_IMAGE, "administrator does not allow"),
        ("a" * (1 << 20) + "b", "larger than 1 MiB"),
    ],
)
def test_malformed_yaml_is_explained(api: TestClient, notebook: str, text: str, says: str) -> None:
    answer = api.put(f"{notebook}/yaml", json={"yaml": text})
    assert (answer.status_code, answer.json()["code"]) == (400, "usage"), answer.text
    assert says in answer.json()["title"]


def test_volumes_and_viewers_have_details_too(api: TestClient) -> None:
    volume = api.get(f"{V1}/volumes/project").json()
    assert (volume["phase"], volume["containers"], volume["url"]) == ("ready", [], None)
    assert api.patch(f"{V1}/volumes/project", json={"stopped": True}).status_code == 400
    assert api.get(f"{V1}/volumes/project/containers/x/log").status_code == 404
    assert api.post("/volumes/api/namespaces/local/viewers", json={"name": "project"}).is_success
    viewer = f"{V1}/viewers/project"
    wait_until("it is open", lambda: api.get(viewer).json()["phase"] == "ready")
    assert api.get(viewer).json()["url"] == "/pvcviewers/local/project/"
    assert api.patch(viewer, json={"cpu": "2"}).status_code == 400
    assert api.patch(viewer, json={"stopped": True}).is_success
    wait_until("it is closed", lambda: api.get(viewer).json()["phase"] == "stopped")
    assert api.get(f"{V1}/pods/x").status_code == 422
    assert api.get(f"{V1}/notebooks/nothing").status_code == 404
    assert api.get("/api/v1/namespaces/other/notebooks/mine").status_code == 404


def test_programs_are_known_by_name(api: TestClient) -> None:
    found = api.get("/api/v1/programs/tensorboard").json()
    assert (found["name"], found["error"]) == ("tensorboard", None)
    for ask in (api.get, lambda path: api.post(f"{path}/install")):
        assert ask("/api/v1/programs/vim").status_code == 404
