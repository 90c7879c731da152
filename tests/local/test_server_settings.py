"""The remotes of a project and the description of the server, over HTTP."""

from collections.abc import Iterator

import httpx2
import pytest
from tests.driver import Project
from tests.local.server import run_server

REMOTES = "/api/v1/remotes"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    found = Project(tmp_path_factory.mktemp("settings"))
    found.shell("echo 1 > a")
    return found


@pytest.fixture(scope="module")
def client(project: Project) -> Iterator[httpx2.Client]:
    with run_server(project) as server, server.client() as asked:
        yield asked


def test_remotes_are_those_of_the_command_line(project: Project, client: httpx2.Client) -> None:
    lab = project.folder.parent / "lab"
    added = client.post(REMOTES, json={"name": "lab", "url": str(lab)})
    assert (added.status_code, added.json()["remotes"]) == (
        201,
        [{"name": "lab", "url": str(lab), "default": True}],
    )
    assert client.post(f"{REMOTES}/lab/check").json()["executions"] is None
    project("push")
    found = client.post(f"{REMOTES}/lab/check").json()
    assert (found["ok"], found["executions"]) == (True, 1)
    project("remote", "add", "full", str(project.folder))
    found = client.post(f"{REMOTES}/full/check").json()
    assert (found["ok"], found["error"]) == (
        False,
        f"{project.folder} is not a remote and not empty",
    )
    left = client.delete(f"{REMOTES}/full").json()["remotes"]
    assert left == project.json("remote", "list")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "../x", "url": "/x"}, 422),
        ({"name": "x", "url": "relative/path"}, 400),
        ({"name": "x", "url": ""}, 422),
    ],
)
def test_a_malformed_remote_is_refused(
    client: httpx2.Client, body: dict[str, str], status: int
) -> None:
    assert client.post(REMOTES, json=body).status_code == status


def test_a_remote_that_does_not_exist_is_not_found(client: httpx2.Client) -> None:
    assert client.delete(f"{REMOTES}/none").status_code == 404
    assert client.post(f"{REMOTES}/none/check").status_code == 404


def test_the_server_describes_itself(project: Project, client: httpx2.Client) -> None:
    found = client.get("/api/v1/server").json()
    assert found["project"] == str(project.folder)
    assert found["database"] == f"SQLite, {project / '.clew/graph.db'}"
