"""The routes of Kubeflow's jupyter app, on this machine."""

from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.server.served_project import Served
from tests.wait import wait_until

NOTEBOOKS = "/jupyter/api/namespaces/local/notebooks"


def form(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "this-machine", "serverType": "jupyter", **more}


def create(api: TestClient, name: str, **more: Any) -> None:
    answer = api.post(NOTEBOOKS, json=form(name, **more))
    assert answer.status_code == 200, answer.text


def names(api: TestClient) -> list[str]:
    return [one["name"] for one in api.get(NOTEBOOKS).json()["notebooks"]]


def test_every_answer_has_upstreams_envelope(api: TestClient, served: Served) -> None:
    for path, field in {
        "/info": "info",
        "/api/config": "config",
        "/api/gpus": "vendors",
        "/api/namespaces": "namespaces",
        "/api/storageclasses": "storageClasses",
        "/api/storageclasses/default": "defaultStorageClass",
        "/api/namespaces/local/pvcs": "pvcs",
        "/api/namespaces/local/poddefaults": "poddefaults",
        "/api/namespaces/local/notebooks": "notebooks",
    }.items():
        answer = api.get(f"/jupyter{path}")
        expected = {"status": 200, "success": True, "user": served.backend.user}
        assert answer.json() == {**expected, field: answer.json()[field]}, path


def test_a_notebook_from_its_creation_to_its_end(api: TestClient, served: Served) -> None:
    created = api.post(NOTEBOOKS, json=form("mine", cpu="500m", environment={"A": "b"}))
    assert created.json()["message"] == "Notebook created successfully."
    wait_until("it runs", lambda: listed(api, "mine")["status"]["phase"] == "ready")
    item = listed(api, "mine")
    assert item["status"] == {"phase": "ready", "message": "Running", "state": "Running"}
    assert (item["cpu"], item["memory"], item["shortImage"]) == ("500m", "1Gi", "this-machine")
    found = api.get(f"{NOTEBOOKS}/mine").json()["notebook"]
    assert (found["kind"], found["metadata"]["name"]) == ("Notebook", "mine")
    assert found["processed_status"] == item["status"]

    pod = api.get(f"{NOTEBOOKS}/mine/pod").json()["pod"]["metadata"]["name"]
    lines = api.get(f"{NOTEBOOKS}/mine/pod/{pod}/logs").json()["logs"]
    assert any("Jupyter Server" in line for line in lines)
    assert api.get(f"{NOTEBOOKS}/mine/pod/another-0/logs").status_code == 404
    events = api.get(f"{NOTEBOOKS}/mine/events").json()["events"]
    assert {event["involvedObject"]["name"] for event in events} == {"mine"}

    stopped = api.patch(f"{NOTEBOOKS}/mine", json={"stopped": True})
    assert stopped.json() == {"status": 200, "success": True, "user": served.backend.user}
    again = api.patch(f"{NOTEBOOKS}/mine", json={"stopped": True})
    assert (again.status_code, again.json()["success"]) == (409, False)
    wait_until("its process is gone", lambda: api.get(f"{NOTEBOOKS}/mine/pod").is_error)
    assert listed(api, "mine")["status"]["phase"] == "stopped"
    no_pod = api.get(f"{NOTEBOOKS}/mine/pod").json()
    assert no_pod["log"].startswith("No pod detected.")
    assert api.patch(f"{NOTEBOOKS}/mine", json={"stopped": False}).is_success

    deleted = api.delete(f"{NOTEBOOKS}/mine").json()
    assert deleted["message"] == "Notebook mine successfully deleted."
    wait_until("it is gone", lambda: "mine" not in names(api))
    gone = api.get(f"{NOTEBOOKS}/mine")
    assert (gone.status_code, gone.json()["status"]) == (404, 404)


def listed(api: TestClient, name: str) -> dict[str, Any]:
    items = api.get(NOTEBOOKS).json()["notebooks"]
    return dict(next(one for one in items if one["name"] == name))


def test_a_name_is_taken_only_once(api: TestClient) -> None:
    create(api, "one")
    taken = api.post(NOTEBOOKS, json=form("one"))
    assert (taken.status_code, taken.json()["success"]) == (409, False)
    assert "the name one is taken" in taken.json()["log"]


def test_a_repeated_request_creates_nothing_again(api: TestClient, served: Served) -> None:
    claim = {
        "metadata": {"generateName": "data-"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    body = form("twice", datavols=[{"mount": "/data", "newPvc": claim}])
    for _ in range(3):
        answer = api.post(NOTEBOOKS, json=body, headers={"Idempotency-Key": "abc"})
        assert answer.status_code == 200, answer.text
    assert names(api).count("twice") == 1
    volumes = served.backend.list("PersistentVolumeClaim", "local")
    assert len([one for one in volumes if one["metadata"]["name"].startswith("data-")]) == 1
    other = api.post(NOTEBOOKS, json=body, headers={"Idempotency-Key": "abd"})
    assert other.status_code == 409


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "name"),
        ({"name": "Not A Name"}, "name"),
        ({"name": "n", "serverType": "vscode"}, "serverType"),
        ({"name": "n", "image": "evil/image"}, "administrator does not allow"),
        ({"name": "n", "customImage": "evil/image"}, "administrator does not allow"),
        ({"name": "n", "cpu": "many"}, "cpu"),
        ({"name": "n", "cpu": "2", "cpuLimit": "1"}, "cpuLimit"),
        ({"name": "n", "gpus": {"num": "1", "vendor": "nvidia.com/gpu"}}, "GPU"),
        ({"name": "n", "datavols": [{"mount": "/data"}]}, "newPvc or existingSource"),
        ({"name": "n", "environment": {"1x": "y"}}, "variable"),
        ({"name": "n", "environment": {"x": 1}}, "value of x"),
        ({"name": "n", "tolerationGroup": "gold"}, "tolerationGroup"),
    ],
)
def test_a_wrong_form_is_explained(api: TestClient, body: dict[str, Any], says: str) -> None:
    answer = api.post(NOTEBOOKS, json=body)
    assert (answer.status_code, answer.json()["success"]) == (400, False)
    assert says in answer.json()["log"]
    assert answer.json()["log"].startswith(answer.json()["title"])


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("{", "application/json"),
        ("[]", "application/json"),
        ("[" * 5000 + "]" * 5000, "application/json"),
        ('{"name": "n"}', "text/plain"),
        ("name=n", "application/x-www-form-urlencoded"),
        ('{"stopped": "yes"}', "application/json"),
    ],
)
def test_a_malformed_body_is_a_bad_request(api: TestClient, body: str, kind: str) -> None:
    for send, path in ((api.post, NOTEBOOKS), (api.patch, f"{NOTEBOOKS}/any")):
        answer = send(path, content=body, headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["success"]) == (400, False), answer.text


def test_a_charset_is_accepted(api: TestClient) -> None:
    kind = {"Content-Type": "application/json; charset=utf-8"}
    assert api.post(NOTEBOOKS, content='{"name": "set"}', headers=kind).is_success


def test_what_does_not_exist_is_not_the_page(api: TestClient) -> None:
    for path in ("/jupyter/api/nothing", f"{NOTEBOOKS}/a/b/c", "/volumes/api/"):
        answer = api.get(path)
        assert (answer.status_code, answer.json()["success"]) == (404, False), path
    assert api.get("/jupyter/").headers["content-type"].startswith("text/html")
    assert api.get("/jupyter/api/namespaces/other/notebooks").status_code == 404
    refused = api.put(f"{NOTEBOOKS}/a", json={})
    assert (refused.status_code, refused.json()["success"]) == (405, False)
    assert set(refused.headers["allow"].split(", ")) == {"GET", "PATCH", "DELETE"}
