"""Lineage over HTTP: a caller sees the namespaces that the cluster lets the caller read."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import quote

import pytest
from blake3 import blake3
from starlette.testclient import TestClient
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder
from tests.unit.server.served_project import BEARER, Served, serve_project

from clew.prov.cluster.observation_numbers import number_events
from clew.prov.events import to_lines


def may_read(namespace: str, *, user: str | None, groups: Sequence[str]) -> bool:
    """Answers as a cluster in which each user may read one namespace, and the server `a`."""
    return (user or "a") == namespace or namespace in groups


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with (
        serve_project(tmp_path_factory.mktemp("project")) as served,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(served.backend, "kind", "cluster", raising=False)
        patch.setattr(served.backend, "may_read", may_read)
        served.service.settings = replace(
            served.service.settings, user_header="x-user", groups_header="x-groups"
        )
        cluster = ClusterBuilder()
        cluster.pod("a", "publish").read("s3://lake/raw", "raw").write("s3://lake/data", "1").end()
        cluster.pod("b", "report").read("s3://lake/data", "1").write("s3://lake/report", "2").end()
        with served.service.graph() as graph:
            cluster.fold(graph)
        served.client.headers.update(BEARER)
        yield served


@pytest.fixture
def client(served: Served) -> TestClient:
    return served.client


def make_token(client: TestClient, user: str | None, headers: dict[str, str]) -> str:
    wanted = {"name": "x", "kubernetes_user": user}
    made = client.post("/api/v1/tokens", json=wanted, headers=headers)
    assert made.status_code == 201, made.text
    return str(made.json()["token"])


def find_readable(client: TestClient, headers: dict[str, str]) -> set[str]:
    """The Pods whose lineage is shown."""
    return {
        pod
        for pod in ("a/publish", "b/report")
        if client.get(
            "/api/v1/lineage", params={"target": f"pod/{pod}"}, headers=headers
        ).is_success
    }


def test_an_access_token_reads_for_its_user(client: TestClient) -> None:
    token = make_token(client, None, {"x-user": "b"})
    bearer = {"Authorization": f"Bearer {token}"}
    assert find_readable(client, bearer) == {"b/report"}
    assert find_readable(client, {**bearer, "x-user": "a"}) == {"a/publish"}
    wanted = {"name": "x", "kubernetes_user": "b"}
    for headers in ({"x-user": "a"}, {}):
        refused = client.post("/api/v1/tokens", json=wanted, headers=headers)
        assert refused.status_code == 403
    assert client.get("/api/v1/tokens").json()["may_choose_user"] is False


def test_without_a_gateway_an_access_token_reads_no_more_than_its_user(
    served: Served, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(served.service.settings, user_header=None, groups_header=None)
    monkeypatch.setattr(served.service, "settings", settings)
    assert find_readable(client, {}) == {"a/publish"}  # the project's own token
    assert client.get("/api/v1/tokens").json()["may_choose_user"] is True
    for user, seen in ((None, set()), ("a", {"a/publish"}), ("b", set())):
        token = make_token(client, user, {})
        assert find_readable(client, {"Authorization": f"Bearer {token}"}) == seen


@pytest.mark.parametrize(
    ("headers", "seen"),
    [
        ({"x-user": "b"}, {"b/report"}),
        ({"x-user": "root", "x-groups": "b, a"}, {"a/publish", "b/report"}),
        ({"x-user": "a", "x-groups": "b"}, {"a/publish", "b/report"}),
    ],
)
def test_a_query_returns_what_the_user_may_read(
    client: TestClient, headers: dict[str, str], seen: set[str]
) -> None:
    asked = {"target": "s3://lake/report"}
    found = client.get("/api/v1/lineage", params=asked, headers=headers).json()
    assert {node["pod"] for node in found["nodes"] if "pod" in node} == seen
    assert ("withheld" in found) == (len(seen) < 2)
    drawn = client.post("/api/v1/lineage/graph", json={**asked, "depth": 10}, headers=headers)
    pods = {box["node"].get("pod") for box in drawn.json()["boxes"] if box["node"]} - {None}
    assert pods == seen
    prov = client.post("/api/v1/lineage/prov", json={**asked, "depth": 10}, headers=headers)
    assert ("publish" in prov.text) == ("a/publish" in seen)
    plan = client.get("/api/v1/reproduction-plan", params=asked, headers=headers)
    assert plan.status_code == (200 if len(seen) == 2 else 403)
    down = client.get("/api/v1/impact", params={"target": "s3://lake/report"}, headers=headers)
    assert down.status_code == 200


def test_the_state_of_the_cluster_has_what_the_user_may_read(client: TestClient) -> None:
    asked = {"as_of": "2023-11-14T22:13:22Z"}  # while the first Pod of the builder ran
    for user, seen in (("a", {"publish"}), ("b", set()), ("c", set())):
        state = client.get("/api/v1/cluster", params=asked, headers={"x-user": user}).json()
        assert {one["name"] for one in state["objects"]} == seen
    refused = client.get("/api/v1/cluster", params={"namespace": "b"}, headers={"x-user": "a"})
    assert refused.status_code == 403


@pytest.mark.parametrize("headers", [{}, {"x-user": ""}, {"x-user": "c"}])
def test_without_a_right_there_is_nothing(client: TestClient, headers: dict[str, str]) -> None:
    for path, asked in (
        ("lineage", {"target": "s3://lake/report"}),
        ("lineage", {"target": "pod/b/report"}),
        ("lineage", {"target": "pod/b/no-such-pod"}),
        ("lineage", {"target": "e1"}),
        ("impact", {"target": "s3://lake/raw"}),
        ("reproduction-plan", {"target": "s3://lake/report"}),
        ("diff", {"a": "pod/a/publish", "b": "pod/b/report"}),
        ("executions/e1", {}),
        ("executions/e1/files", {}),
    ):
        answer = client.get(f"/api/v1/{path}", params=asked, headers=headers)
        assert answer.status_code == 403, (path, asked)
    assert client.get("/api/v1/search", params={"q": "lake"}, headers=headers).json()["hits"] == []
    assert client.get("/api/v1/executions", headers=headers).json()["executions"] == []
    ask = {"target": "pod/b/report", "asker": {"machine": "m", "cwd": "/", "agent": "x"}}
    asked = client.post("/api/v1/commands/ask/lineage", json=ask, headers=headers)
    assert asked.status_code == 403


def test_an_error_names_no_namespace_that_the_caller_did_not_give(client: TestClient) -> None:
    for path, target in (
        ("executions/e1", None),
        ("lineage", "e1"),
        ("reproduction-plan", "e1"),
        ("reproduction-plan", "s3://lake/raw"),
        ("reproduction-plan", "s3://lake/report"),
    ):
        for user in ("b", "c"):
            answer = client.get(
                f"/api/v1/{path}", params={"target": target}, headers={"x-user": user}
            )
            assert answer.status_code == 403, (path, target)
            for hidden in ("publish", "namespace a", "namespace b"):
                assert hidden not in answer.text


def test_notes_are_shown_to_those_who_may_read_what_they_are_about(client: TestClient) -> None:
    (node,) = [
        node
        for node in client.get(
            "/api/v1/lineage",
            params={"target": "s3://lake/report"},
            headers={"x-user": "root", "x-groups": "a, b"},
        ).json()["nodes"]
        if node.get("locator") == "s3://lake/report"
    ]
    for target in ("s3://lake/report", node["digest"], "pod/b/report"):
        new = {"target": target, "notes": {"why": f"a secret of b about {target}"}}
        for user in ("c", "a", "b"):
            headers = {"x-user": user}
            added = client.post("/api/v1/notes", json=new, headers=headers)
            listed = client.get("/api/v1/notes", params={"target": target}, headers=headers)
            assert ("secret" in added.text) == ("secret" in listed.text) == (user == "b")
            assert (added.status_code, listed.status_code) == (
                (201, 200) if user == "b" else (403, 403)
            )


def test_content_is_given_to_those_who_may_read_a_namespace_that_has_it(
    client: TestClient,
) -> None:
    data = b"of the namespace a"
    name = f"blake3:{blake3(data).hexdigest()}"
    assert client.put(f"/api/v1/content/{name}", content=data).status_code == 200
    cluster = ClusterBuilder()
    cluster.now += 10**12
    claim = "pvc://a/data@pv-1/secret"
    cluster.pod("a", "writer").write(claim, data.decode(), stored=True).end()
    events = b"".join(to_lines(number_events(cluster.audit + cluster.files)))
    sent = client.post(
        "/api/v1/observations", content=events, headers={"Content-Type": "application/x-ndjson"}
    )
    assert sent.status_code == 200, sent.text
    asker = {"machine": "m", "cwd": "/", "agent": "x"}
    for headers, status in (({"x-user": "a"}, 200), ({"x-user": "b"}, 403), ({}, 403)):
        for part in ("content", "preview"):
            path = f"/api/v1/versions/{quote(name, safe='')}/{part}"
            assert client.get(path, headers=headers).status_code == status
        body = {"target": name, "asker": asker}
        asked = client.post("/api/v1/commands/content", json=body, headers=headers)
        assert asked.status_code == status
        for route, field in (("records", "contents"), ("chunks", "contents"), ("chunks", "chunks")):
            pack = client.post(f"/api/v1/content/{route}", json={field: [name]}, headers=headers)
            assert pack.status_code == status, (route, field)
            assert (data in pack.content) == (status == 200 and route == "chunks")
        listed = client.get("/api/v1/versions", params={"locator": claim}, headers=headers).json()
        assert len(listed["versions"]) == (status == 200)


def test_the_cluster_as_it_was(client: TestClient) -> None:
    everything = {"x-user": "root", "x-groups": "a,b"}
    for as_of, status in (("2020-01-01T00:00:00Z", 404), ("9999-12-31T00:00:00Z", 200)):
        asked = {"target": "s3://lake/report", "as_of": as_of}
        answer = client.get("/api/v1/lineage", params=asked, headers=everything)
        assert answer.status_code == status
        plan = client.get("/api/v1/reproduction-plan", params=asked, headers=everything)
        assert plan.status_code == status
        drawn = client.post("/api/v1/lineage/graph", json=asked, headers=everything)
        assert drawn.status_code == status


def test_what_is_not_a_command_is_reproduced_not_repeated(client: TestClient) -> None:
    headers = {"x-user": "root", "x-groups": "a,b"}
    refused = client.post("/api/v1/executions/e2/repeats", headers=headers)
    assert refused.status_code == 400
    assert refused.json()["detail"] == "clew reproduce e2 --dry-run"
    asked = {"target": "e2"}
    plan = client.get("/api/v1/reproduction-plan", params=asked, headers=headers).json()
    assert plan["plan"] == [], "its output is stored"
    assert "report" in {pod["pod"] for pod in plan["skipped"]}
