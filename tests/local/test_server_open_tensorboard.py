"""Open a TensorBoard of what an execution or a run wrote, as it wrote it."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.driver import Project
from tests.local.server import run_up

OPEN = "/api/v1/namespaces/local/open-tensorboard"
BOARDS = "/tensorboards/api/namespaces/local/tensorboards"
TRAIN = """
mkdir -p runs/a runs/b
echo first > runs/a/events.out.tfevents.1
echo second > runs/b/events.out.tfevents.2
echo weights > runs/model.bin
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """e1 writes logs, which are overwritten and removed afterwards; e2 writes none."""
    made = Project(tmp_path_factory.mktemp("boards"))
    made.sh(TRAIN)
    made.sh("echo nothing > other.txt")
    (made / "runs/a/events.out.tfevents.1").write_text("later")
    (made / "runs/b/events.out.tfevents.2").unlink()
    return made


@pytest.fixture(scope="module")
def client(project: Project) -> Iterator[httpx2.Client]:
    with run_up(project) as server, server.client() as found:
        yield found


def open_logs(client: httpx2.Client, **source: str) -> dict[str, Any]:
    answer = client.post(OPEN, json=source)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def logs_of(client: httpx2.Client, name: str) -> str:
    items = client.get(BOARDS).json()["tensorboards"]
    [found] = [str(one["logspath"]) for one in items if one["name"] == name]
    return found


def test_what_an_execution_wrote_is_shown_as_it_wrote_it(
    project: Project, client: httpx2.Client
) -> None:
    first, again = open_logs(client, target="e1"), open_logs(client, target="e1")
    assert (first["created"], again["created"]) == (True, False)
    assert first["name"] == again["name"]
    assert first["url"] == f"/tensorboard/local/{first['name']}/"
    claim, _, path = logs_of(client, first["name"]).removeprefix("pvc://").partition("/")
    assert claim == "project"
    directory = project.folder / path
    found = {
        str(file.relative_to(directory)): file.read_text()
        for file in directory.rglob("*")
        if file.is_file()
    }
    assert found == {"a/events.out.tfevents.1": "first\n", "b/events.out.tfevents.2": "second\n"}


def test_a_directory_and_a_bucket_have_one_each(client: httpx2.Client) -> None:
    for logs in ("pvc://project/runs", "s3://bucket/experiments/7"):
        first, again = open_logs(client, logspath=logs), open_logs(client, logspath=f"{logs}/")
        assert first["name"] == again["name"]
        assert logs_of(client, first["name"]) == logs
        stop = {"stopped": True}
        board = f"/api/v1/namespaces/local/tensorboards/{first['name']}"
        assert client.patch(board, json=stop).is_success
        open_logs(client, logspath=logs)
        assert client.get(board).json()["phase"] != "stopped"


@pytest.mark.parametrize(
    ("source", "status", "says"),
    [
        ({"target": "e2"}, 404, "e2 wrote no TensorBoard logs"),
        ({"target": "e99"}, 404, "no execution e99"),
        ({}, 400, "either target or logspath"),
        ({"target": "e1", "logspath": "s3://b"}, 400, "either target or logspath"),
        ({"logspath": "runs"}, 400, "pvc://"),
        ({"logspath": "pvc://project/../.."}, 400, "leads out"),
        ({"target": ""}, 422, "target"),
    ],
)
def test_what_cannot_be_opened_is_explained(
    client: httpx2.Client, source: dict[str, str], status: int, says: str
) -> None:
    answer = client.post(OPEN, json=source)
    assert (answer.status_code, says in answer.json()["title"]) == (status, True), answer.text
