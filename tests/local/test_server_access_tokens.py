"""Personal access tokens: created in the web app or with the project's token, and then used."""

import time
from collections.abc import Iterator

import httpx2
import pytest
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.wait import wait_until

from clew import db

TOKENS, ASKED = "/api/v1/tokens", "/api/v1/executions"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, graph: dict[str, str]) -> Project:
    return Project(tmp_path_factory.mktemp("tokens"), **graph)


@pytest.fixture(scope="module")
def server(project: Project) -> Iterator[Server]:
    with run_server(project) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[httpx2.Client]:
    """With the project's own token."""
    with server.client() as found:
        yield found


def create(client: httpx2.Client, name: str = "CI", days: int = 7) -> tuple[str, str]:
    """The id and the token."""
    made = client.post(TOKENS, json={"name": name, "days": days})
    assert made.status_code == 201, made.text
    return made.json()["details"]["id"], made.json()["token"]


def ask(server: Server, token: str, path: str = ASKED, method: str = "GET") -> int:
    with server.client(headers={"Authorization": f"Bearer {token}"}) as asked:
        return asked.request(method, path).status_code


def test_a_token_is_accepted_until_it_is_revoked(server: Server, client: httpx2.Client) -> None:
    id_, token = create(client)
    assert ask(server, token) == 200
    (listed,) = [one for one in client.get(TOKENS).json()["tokens"] if one["id"] == id_]
    assert (listed["name"], listed["expired"]) == ("CI", False)
    assert listed["last_used"] is not None
    assert token not in client.get(TOKENS).text
    assert client.delete(f"{TOKENS}/{id_}").status_code == 204
    assert ask(server, token) == 401
    assert client.delete(f"{TOKENS}/{id_}").status_code == 404


def test_a_token_almost_like_it_is_refused(server: Server, client: httpx2.Client) -> None:
    _, token = create(client)
    last = "0" if token[-1] != "0" else "1"
    for wrong in (token[:-1] + last, token[:-1], token.upper(), f"clew_{'0' * 16}_{'0' * 64}"):
        assert ask(server, wrong) == 401, wrong


def test_a_token_cannot_make_or_list_tokens(server: Server, client: httpx2.Client) -> None:
    id_, token = create(client)
    with server.client(headers={"Authorization": f"Bearer {token}"}) as limited:
        refused = limited.post(TOKENS, json={"name": "another"})
        assert (refused.status_code, refused.json()["code"]) == (403, "not-allowed")
        assert limited.get(TOKENS).status_code == 403
        assert limited.delete(f"{TOKENS}/{id_}").status_code == 403
        assert limited.get("/", params={"token": token}).status_code == 401


def test_the_database_holds_no_token_and_expiry_counts(
    project: Project, server: Server, client: httpx2.Client
) -> None:
    id_, token = create(client)
    assert ask(server, token) == 200
    address = project.environment.get("CLEW_GRAPH")
    with db.connect(project / ".clew/graph.db", address=address) as database:
        (row,) = database.rows("SELECT * FROM access_token WHERE id = ?", (id_,))
        assert token.rpartition("_")[2] not in str(row)
        expired = (int(time.time()) - 1, id_)
        database.rows("UPDATE access_token SET expires = ? WHERE id = ?", expired)
    wait_until("the token to expire", lambda: ask(server, token) == 401)
    (listed,) = [one for one in client.get(TOKENS).json()["tokens"] if one["id"] == id_]
    assert listed["expired"]


def test_every_server_of_a_project_knows_a_token(
    project: Project, server: Server, client: httpx2.Client
) -> None:
    with run_server(project) as other:
        id_, token = create(client)
        assert ask(other, token) == 200
        client.delete(f"{TOKENS}/{id_}")
        wait_until("the other server to refuse it", lambda: ask(other, token) == 401)


def test_the_command_line_uses_a_token(server: Server, client: httpx2.Client) -> None:
    _, token = create(client, "laptop")
    there = Project(server.log.parent / "there", init=False)
    there.environment |= {"CLEW_SERVER": server.address, "CLEW_TOKEN": token}
    assert there.json("list") == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": " "},
        {"name": "a\nb"},
        {"name": "a\0b"},
        {"name": "x", "days": 366},
        {"name": 1},
    ],
)
def test_a_malformed_request_is_refused(client: httpx2.Client, body: dict[str, object]) -> None:
    assert client.post(TOKENS, json=body).status_code == 422


def test_an_agents_token_sends_observations_and_nothing_else(
    server: Server, client: httpx2.Client
) -> None:
    made = client.post(TOKENS, json={"name": "agent", "scope": "observe"}).json()
    assert made["details"]["scope"] == "observe"
    token = made["token"]
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    routes = [(method, path) for path, methods in paths.items() for method in methods]
    routes += [("get", path) for path in ("/", "/runs", "/apis/v2beta1/runs", "/api/v1/content/x")]
    routes += [("post", "/api/v1/events"), ("put", f"/api/v1/content/blake3:{'0' * 64}")]
    permitted = {"/api/v1/observations", "/api/v1/content", "/api/v1/content/missing"}
    for method, path in routes:
        if method == "post" and path in permitted:
            continue
        assert ask(server, token, path, method.upper()) == 403, (method, path)
    with server.client(headers={"Authorization": f"Bearer {token}"}) as agent:
        assert agent.post("/api/v1/content/missing", json={}).status_code == 200
        batch = {"content": b"\x90", "headers": {"Content-Type": "application/msgpack"}}
        assert agent.post("/api/v1/observations", **batch).json() == {"events": 0}
