"""The routes of Kubeflow's tensorboards app, on this machine."""

import pytest
from starlette.testclient import TestClient
from tests.unit.server.served_project import Served
from tests.wait import wait_until

from clew.server.http.client_limits import Limits
from clew.workloads.tensorboards import build_tensorboard, tensorboard_item

BOARDS = "/tensorboards/api/namespaces/local/tensorboards"


def test_a_tensorboard_from_its_creation_to_its_end(api: TestClient, served: Served) -> None:
    body = {"name": "losses", "logspath": "pvc://project/runs", "configurations": []}
    created = api.post(BOARDS, json=body).json()
    assert created["message"] == "Tensorboard created successfully."

    def state() -> str:
        [board] = api.get(BOARDS).json()["tensorboards"]
        assert (board["name"], board["logspath"]) == ("losses", "pvc://project/runs")
        return str(board["status"]["state"])

    # It need not be installed where the tests run.
    wait_until("its state has a cause", lambda: state() in ("NotInstalled", "Running"))
    [board] = api.get(BOARDS).json()["tensorboards"]
    if board["status"]["phase"] == "warning":
        assert "with one click" in board["status"]["message"]
    assert api.post(BOARDS, json=body).status_code == 409
    deleted = api.delete(f"{BOARDS}/losses").json()
    assert deleted["message"] == "Tensorboard losses successfully deleted."
    wait_until("it is gone", lambda: not api.get(BOARDS).json()["tensorboards"])


def test_volumes_are_names(api: TestClient) -> None:
    assert api.get("/tensorboards/api/namespaces/local/pvcs").json()["pvcs"] == ["project"]
    assert api.get("/tensorboards/api/namespaces/local/poddefaults").json()["poddefaults"] == []


def test_wrong_forms_are_explained(api: TestClient) -> None:
    for body, says in (
        ({"name": "n"}, "logspath"),
        ({"logspath": "pvc://project/runs"}, "name"),
        ({"name": "n", "logspath": "pvc://project/../../etc"}, "leads out of its volume"),
        ({"name": "n", "logspath": "runs"}, "pvc://"),
        ({"name": "n", "logspath": "pvc://project", "configurations": "all"}, "configurations"),
    ):
        answer = api.post(BOARDS, json=body)
        assert (answer.status_code, says in answer.json()["log"]) == (400, True), answer.text


def test_a_repeated_request_creates_nothing_again(api: TestClient) -> None:
    body = {"name": "twice", "logspath": "s3://bucket/logs"}
    for _ in range(2):
        assert api.post(BOARDS, json=body, headers={"Idempotency-Key": "k"}).is_success
    assert api.post(BOARDS, json=body).status_code == 409
    bad = api.post(BOARDS, json=body, headers={"Idempotency-Key": "a b\tc" * 99})
    assert bad.status_code == 422
    assert api.delete(f"{BOARDS}/twice").is_success


def test_the_list_names_the_configurations_that_apply() -> None:
    wanted = {
        "metadata": {"name": "lake-access"},
        "spec": {"selector": {"matchLabels": {"lake": "true"}}},
    }
    for chosen, named in ((["lake"], ("lake-access",)), ([], ())):
        body = {"name": "b", "logspath": "s3://bucket/logs", "configurations": chosen}
        board = build_tensorboard(body, namespace="local")
        assert tensorboard_item(board, [wanted]).configurations == named


@pytest.mark.parametrize("app", ["jupyter", "tensorboards", "volumes"])
def test_probes_and_metrics_need_no_identity(api: TestClient, served: Served, app: str) -> None:
    with served.client_with(Limits()) as nobody:
        for path, says in (("liveness", "alive"), ("readiness", "ready")):
            answer = nobody.get(f"/{app}/healthz/{path}")
            assert (answer.status_code, answer.json()) == (200, says)
        assert "clew_http_requests" in nobody.get(f"/{app}/metrics").text
        assert nobody.get(f"/{app}/info").status_code == 401
