"""The routes of Kubeflow's volumes app, on this machine, where a volume is a directory."""

from typing import Any

from starlette.testclient import TestClient
from tests.unit.server.served_project import Served
from tests.wait import wait_until

VOLUMES = "/volumes/api/namespaces/local/pvcs"
VIEWERS = "/volumes/api/namespaces/local/viewers"
FORM = {"mode": "ReadWriteOnce", "class": "{empty}", "size": "1Gi", "type": "empty"}


def listed(api: TestClient, name: str) -> dict[str, Any]:
    items = api.get(VOLUMES).json()["pvcs"]
    return dict(next((one for one in items if one["name"] == name), {}))


def test_a_volume_from_its_creation_to_its_end(api: TestClient, served: Served) -> None:
    assert api.post(VOLUMES, json={"name": "data", **FORM}).is_success
    wait_until("it is bound", lambda: listed(api, "data")["status"]["phase"] == "ready")
    item = listed(api, "data")
    assert item["age"].endswith(" GMT")
    expected = {
        "namespace": "local",
        "capacity": "1Gi",
        "modes": ["ReadWriteOnce"],
        "class": None,
        "notebooks": [],
        "viewer": {"status": "uninitialized", "url": None},
    }
    assert {name: item[name] for name in expected} == expected
    assert api.get(f"{VOLUMES}/data").json()["pvc"]["kind"] == "PersistentVolumeClaim"
    assert api.get(f"{VOLUMES}/data/events").json()["events"] == []

    assert api.post(VIEWERS, json={"name": "data"}).is_success
    wait_until("it is open", lambda: listed(api, "data")["viewer"]["status"] == "ready")
    assert listed(api, "data")["viewer"]["url"] == "/pvcviewers/local/data/"
    [pod] = api.get(f"{VOLUMES}/data/pods").json()["pods"]
    assert pod["metadata"]["labels"]["app.kubernetes.io/part-of"] == "pvc-viewer"
    directory = served.service.directory.path / "volumes" / "data"
    assert directory.is_dir()
    deleted = api.delete(f"{VOLUMES}/data").json()
    assert deleted["message"] == "PVC data successfully deleted."
    wait_until("it and its viewer are gone", lambda: not listed(api, "data"))
    assert not directory.exists()
    assert not served.backend.list("PVCViewer", "local")


def test_a_volume_in_use_is_kept(api: TestClient, served: Served) -> None:
    assert api.post(VOLUMES, json={"name": "used", **FORM}).is_success
    mount = {"mount": "/d", "existingSource": {"persistentVolumeClaim": {"claimName": "used"}}}
    notebooks = "/jupyter/api/namespaces/local/notebooks"
    assert api.post(notebooks, json={"name": "user", "datavols": [mount]}).is_success
    wait_until("it runs", lambda: api.get(f"{VOLUMES}/used/pods").json()["pods"])
    assert listed(api, "used")["notebooks"] == ["user"]
    refused = api.delete(f"{VOLUMES}/used")
    assert (refused.status_code, refused.json()["title"]) == (
        409,
        "the volume used is used by user",
    )
    assert api.delete(f"{notebooks}/user").is_success
    wait_until("nothing uses it", lambda: api.delete(f"{VOLUMES}/used").is_success)
    wait_until("it is gone", lambda: not listed(api, "used"))


def test_the_project_is_a_volume_that_stays(api: TestClient) -> None:
    assert listed(api, "project")["status"]["phase"] == "ready"
    assert api.delete(f"{VOLUMES}/project").status_code == 403
    assert api.post(VOLUMES, json={"name": "project", **FORM}).status_code == 409


def test_wrong_forms_are_explained(api: TestClient) -> None:
    for change, says in (
        ({"name": ""}, "name"),
        ({"mode": "Any"}, "mode"),
        ({"size": "large"}, "size"),
        ({"size": "0"}, "size"),
        ({"class": 3}, "storageClassName"),
        ({"snapshot": "yesterday"}, "no snapshots"),
    ):
        answer = api.post(VOLUMES, json={"name": "wrong", **FORM, **change})
        assert (answer.status_code, says in answer.json()["log"]) == (400, True), answer.text
    missing = api.post(VIEWERS, json={"name": "nothing"})
    assert (missing.status_code, missing.json()["title"]) == (400, "there is no volume nothing")
    assert api.delete(f"{VIEWERS}/nothing").status_code == 404
    assert api.delete(f"{VOLUMES}/nothing").status_code == 404
