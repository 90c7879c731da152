"""Our own API, asked over HTTP of a server that really runs."""

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from tests.driver import Project
from tests.local.programs.compiling import HERE, run_script
from tests.local.server import Server, run_server
from tests.wait import wait_until

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
BIG = 5_000_000


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One that holds a little of everything."""
    made = Project(tmp_path_factory.mktemp("v1"))
    (made / "raw.csv").write_text("name,size\nb,2\na,1\n")
    (made / "dot.png").write_bytes(PIXEL)
    (made / "big.bin").write_bytes(bytes(range(256)) * (BIG // 256) + b"end")
    made.sh("sort raw.csv > sorted.csv; cat dot.png big.bin > /dev/null", options=("--name", "one"))
    made.sh("wc -l < sorted.csv > lines.txt")
    made.sh("echo nothing to do with it > apart.txt")
    run_script(HERE / "measuring.py", made / "measuring.yaml")
    return made


@pytest.fixture(scope="module")
def server(project: Project) -> Iterator[Server]:
    with run_server(project, "--runs", "1") as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx2.Client]:
    with server.client() as found:
        yield found


@pytest.fixture(scope="module")
def run(project: Project, client: httpx2.Client) -> dict[str, Any]:
    """One that was asked for here, and has come to its end."""
    asked = {"spec": (project / "measuring.yaml").read_text(), "parameters": {"rate": 0.75}}
    made = client.post("/api/v1/runs", json=asked)
    assert made.status_code == 201, made.text
    assert (made.json()["id"], made.json()["state"]) == (None, "pending")
    return ended(client, made.json()["uid"])


def ended(client: httpx2.Client, uid: str) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        run = get(client, f"runs/{uid}")
        return None if run["state"] in ("pending", "running") else run

    return wait_until("the end of the run", found) or {}


def get(client: httpx2.Client, path: str, /, **query: Any) -> Any:
    found = client.get(f"/api/v1/{path}", params=query)
    assert found.status_code == 200, found.text
    return found.json()


def test_executions_come_in_pages(client: httpx2.Client, project: Project) -> None:
    first = get(client, "executions", limit=2)
    rest = get(client, "executions", after=first["next"])
    shown = json.loads(project.command("list", "--json").stdout)
    found = [*first["executions"], *rest["executions"]]
    assert len(first["executions"]) == 2
    assert [one["id"] for one in found[-3:]] == ["e3", "e2", "e1"]
    assert found[-1] == shown[-1]
    assert (first["total"], rest["total"]) == (len(found), None)


def test_one_execution_is_that_of_the_command_line(client: httpx2.Client, project: Project) -> None:
    for detail in (False, True):
        words = ["show", "one", "--json", *(["--detail"] if detail else [])]
        assert get(client, "executions/one", detail=detail) == json.loads(
            project.command(*words).stdout
        )


def test_files_are_filtered_and_come_in_pages(client: httpx2.Client) -> None:
    data = get(client, "executions/e1/files", **{"class": "data", "role": "input"})
    assert {Path(one["path"]).name for one in data["files"]} >= {"raw.csv", "dot.png", "big.bin"}
    one = get(client, "executions/e1/files", path="RAW.c")
    assert [Path(file["path"]).name for file in one["files"]] == ["raw.csv"]
    page = get(client, "executions/e1/files", limit=1)
    assert page["total"] > 3
    assert (len(page["files"]), page["next"]) == (1, 1)


def test_processes(client: httpx2.Client) -> None:
    found = get(client, "executions/e1/processes")["processes"]
    assert "sort" in [one["command"][0] for one in found]


@pytest.mark.parametrize("kind", ["requirements", "packages", "readme"])
def test_reports(client: httpx2.Client, project: Project, kind: str) -> None:
    found = client.get(f"/api/v1/executions/e1/reports/{kind}")
    assert found.text == project.command("show", "e1", f"--{kind}").stdout.decode()


def test_prov(client: httpx2.Client, project: Project) -> None:
    found = client.get("/api/v1/executions/e1/prov")
    assert found.json() == json.loads(project.command("export", "e1").stdout)


def test_versions_of_a_path(client: httpx2.Client) -> None:
    found = get(client, "versions", path="sorted.csv")["versions"]
    assert [one["execution"] for one in found] == ["e1", "e2"]


def test_content_and_ranges_of_it(client: httpx2.Client, project: Project) -> None:
    whole = (project / "big.bin").read_bytes()
    at = f"/api/v1/versions/e1:{project / 'big.bin'}/content"
    found = client.get(at)
    assert found.content == whole
    tag = found.headers["etag"]
    digests = {f["path"]: f["digest"] for f in get(client, "executions/e1/files")["files"]}
    assert tag == f'"{digests[str(project / "big.bin")]}"'
    for asked, part in {
        "bytes=0-0": whole[:1],
        "bytes=1000000-2500000": whole[1_000_000:2_500_001],
        f"bytes={BIG - 100}-": whole[BIG - 100 :],
        "bytes=-3": b"end",
        "bytes=5-99999999999": whole[5:],
    }.items():
        got = client.get(at, headers={"Range": asked})
        assert (got.status_code, got.content == part) == (206, True), asked
        assert got.headers["content-range"].endswith(f"/{len(whole)}")
    beyond = client.get(at, headers={"Range": f"bytes={len(whole)}-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{len(whole)}")
    for nonsense in ("bytes=7-2", "lines=1-2", "bytes=1-2,5-6"):
        assert client.get(at, headers={"Range": nonsense}).status_code == 200
    assert client.get(at, headers={"If-None-Match": tag}).status_code == 304
    changed = client.get(at, headers={"Range": "bytes=0-0", "If-Range": '"other"'})
    assert changed.content == whole
    head = client.head(at)
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(whole)))


def test_unknown_content(client: httpx2.Client) -> None:
    assert client.get("/api/v1/versions/e1:/no/such/content").status_code == 404
    refused = client.get("/api/v1/versions/e1/content")
    assert (refused.status_code, refused.json()["code"]) == (400, "usage")


def test_previews(client: httpx2.Client, project: Project) -> None:
    def preview(name: str) -> dict[str, Any]:
        found: dict[str, Any] = get(client, f"versions/e1:{project / name}/preview")
        return found

    table = preview("raw.csv")
    assert (table["kind"], table["columns"], table["rows"]) == (
        "table",
        ["name", "size"],
        [["b", "2"], ["a", "1"]],
    )
    image = preview("dot.png")
    assert (image["kind"], image["media_type"]) == ("image", "image/png")
    assert base64.b64decode(image["image"]) == PIXEL
    assert (preview("big.bin")["kind"], preview("big.bin")["truncated"]) == ("binary", True)


def test_lineage(client: httpx2.Client, project: Project) -> None:
    shown = json.loads(project.command("trace", "lines.txt", "--json").stdout)
    assert get(client, "lineage", target="lines.txt") == shown
    near = get(client, "lineage", target="lines.txt", depth=1)
    assert len(near["nodes"]) < len(shown["nodes"])
    down = get(client, "lineage", target="raw.csv", direction="down")
    assert "lines.txt" in {Path(node["label"]).name for node in down["nodes"]}


def test_paths_between_two_nodes(client: httpx2.Client) -> None:
    found = get(client, "lineage/between", a="raw.csv", b="lines.txt")
    names = [Path(node.split("@")[0]).name for node in found["shortest"]]
    assert (names[0], names[2], names[-1]) == ("raw.csv", "sorted.csv", "lines.txt")
    assert {node["id"] for node in found["nodes"]} == set(found["shortest"])
    back = get(client, "lineage/between", a="lines.txt", b="raw.csv")
    assert (back["from"], back["nodes"]) == (found["from"], found["nodes"])
    apart = get(client, "lineage/between", a="apart.txt", b="lines.txt")
    assert (apart["from"], apart["nodes"], apart["edges"]) == (None, [], [])
    across = get(client, "lineage/between", a="e1", b="e2")
    assert "sorted.csv" in {Path(node["label"]).name for node in across["nodes"]}


def test_search(client: httpx2.Client) -> None:
    def hits(text: str) -> list[tuple[str, str]]:
        found = get(client, "search", q=text)["hits"]
        return [(one["kind"], Path(one["label"]).name) for one in found]

    assert ("file", "sorted.csv") in hits("Sorted.cs")
    assert ("execution", "one") in hits("one")
    assert any(kind == "process" and "wc" in label for kind, label in hits("wc -l"))
    digest = get(client, "versions", path="lines.txt")["versions"][0]["digest"]
    assert hits(digest[:20]) == [("file", "lines.txt")]
    assert hits("100%") == []


def test_differences(client: httpx2.Client, project: Project) -> None:
    shown = json.loads(project.command("diff", "e1", "e2", "--json").stdout)
    assert get(client, "diff", a="e1", b="e2") == shown


def test_notes(client: httpx2.Client) -> None:
    said = {"target": "e3", "notes": {"target": "kept", "why": "it was late"}}
    made = client.post("/api/v1/notes", json=said)
    assert made.status_code == 201, made.text
    found = get(client, "notes", target="e3")["notes"]
    assert {one["key"]: one["value"] for one in found} == said["notes"]


def test_a_run_that_was_asked_for(
    client: httpx2.Client, project: Project, run: dict[str, Any]
) -> None:
    assert run["state"] == "succeeded", run
    shown = json.loads(project.command("pipeline", "show", run["id"], "--json").stdout)
    assert {name: run[name] for name in shown} == shown
    assert get(client, f"runs/{run['id']}") == run
    assert run["uid"] in {one["uid"] for one in get(client, "runs")["runs"]}
    assert get(client, f"runs/{run['uid']}/tasks")["tasks"] == run["tasks"]
    assert get(client, f"tasks/{run['id']}/train") == run["tasks"][0]


def test_numbers_and_artifacts_of_a_run(client: httpx2.Client, run: dict[str, Any]) -> None:
    (line,) = get(client, f"runs/{run['id']}/metrics")["metrics"]
    assert (line["task"], line["values"]) == (
        f"{run['id']}/train",
        {"Output": 1.5, "scores.accuracy": 1.25},
    )
    made = {one["name"]: one for one in get(client, f"runs/{run['id']}/artifacts")["artifacts"]}
    assert set(made) == {"model", "scores"}
    model = made["model"]
    content = client.get(f"/api/v1/versions/{model['id']}/content")
    assert content.text == "w,b\n0.75,1\n"
    assert content.headers["etag"] == f'"{model["digest"]}"'


def test_why(client: httpx2.Client, project: Project, run: dict[str, Any]) -> None:
    shown = json.loads(project.command("pipeline", "why", f"{run['id']}/train", "--json").stdout)
    assert get(client, f"tasks/{run['id']}/train/why") == shown


def test_two_runs_are_compared(
    client: httpx2.Client, project: Project, run: dict[str, Any]
) -> None:
    asked = {"spec": (project / "measuring.yaml").read_text(), "parameters": {"rate": 0.5}}
    other = ended(client, client.post("/api/v1/runs", json=asked).json()["uid"])
    found = get(client, "diff", a=run["id"], b=other["id"])
    assert found["inputs"] == {"rate": [0.75, 0.5]}
    assert found["tasks"][0]["name"] == "train"
    first = get(client, "runs", limit=1)
    assert first["runs"][0]["uid"] == other["uid"]
    before = [one["uid"] for one in get(client, "runs", after=first["next"])["runs"]]
    assert run["uid"] in before
    assert other["uid"] not in before


def test_what_cannot_be_run_is_refused_at_once(client: httpx2.Client, project: Project) -> None:
    spec = (project / "measuring.yaml").read_text()
    for asked in (
        {},
        {"spec": spec, "pipeline": "x"},
        {"spec": "no: pipeline"},
        {"spec": "2001-99-99"},
        {"spec": "[" * 5000},
        {"spec": spec, "parameters": {"nobody": 1}},
        {"spec": spec, "parameters": {"rate": "fast"}},
    ):
        refused = client.post("/api/v1/runs", json=asked)
        assert refused.status_code == 400, (asked, refused.text)
        assert refused.headers["content-type"] == "application/problem+json"
    unknown = client.post("/api/v1/runs", json={"pipeline": "nobody"})
    assert unknown.status_code == 404


def test_a_run_is_canceled_and_resumed(
    client: httpx2.Client, project: Project, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    spec = (project / "measuring.yaml").read_text()
    asked = {"spec": spec, "parameters": {"gate": str(gate)}, "name": "stopped"}
    uid = client.post("/api/v1/runs", json=asked).json()["uid"]
    queued = client.post("/api/v1/runs", json=asked).json()["uid"]
    wait_until("its start", lambda: get(client, f"runs/{uid}")["id"])
    assert get(client, f"runs/{queued}")["state"] == "pending"  # one at a time
    assert client.post(f"/api/v1/runs/{queued}/cancel").json()["state"] == "canceled"
    assert client.post(f"/api/v1/runs/{uid}/cancel").status_code == 202
    assert ended(client, uid)["state"] == "canceled"
    gate.touch()
    assert client.post(f"/api/v1/runs/{uid}/resume").status_code == 202
    assert ended(client, uid)["state"] == "succeeded"
    assert client.post(f"/api/v1/runs/{uid}/resume").status_code == 400


def test_numbers_for_prometheus(client: httpx2.Client, run: dict[str, Any]) -> None:
    client.get("/api/v1/executions/nobody")
    said = client.get("/metrics").text
    counted = 'clew_http_requests_total{method="GET",route="/api/v1/executions/{id}",status="404"}'
    assert counted in said
    assert 'clew_runs{state="queued"} 0.0' in said
    assert 'clew_runs{state="succeeded"}' in said


def test_every_request_is_logged_without_the_token(server: Server, client: httpx2.Client) -> None:
    client.get("/api/v1/executions", params={"limit": 1})
    with httpx2.Client(base_url=server.address) as browser:
        browser.get("/", params={"token": server.token, "and": "more"})
    found = wait_until(
        "its line", lambda: [x for x in server.lines() if "and=more" in x.get("query", "")]
    )
    assert found[0]["query"] == "token=***&and=more"
    assert found[0]["status"] == 303
    assert server.token not in server.log.read_text()
    assert any(one.get("route") == "/api/v1/executions" for one in server.lines())


def test_a_server_without_its_database_lives_but_is_not_ready(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with run_server(project, "--graph", f"host={tmp_path} connect_timeout=1") as server:
        with httpx2.Client(base_url=server.address, timeout=60) as anybody:
            assert anybody.get("/healthz").status_code == 200
            refused = anybody.get("/readyz")
            assert (refused.status_code, refused.headers["content-type"]) == (
                503,
                "application/problem+json",
            )
            assert "clew_http_requests_total" in anybody.get("/metrics").text
        with server.client() as client:
            assert client.get("/api/v1/executions").status_code >= 500


def test_connections_that_the_database_closed_are_reopened(
    tmp_path: Path, shared_graph: str
) -> None:
    project = Project(tmp_path, CLEW_GRAPH=f"{shared_graph} application_name=cut")
    with run_server(project, "--runs", "2") as server, server.client() as client:
        with ThreadPoolExecutor(8) as many:
            for found in many.map(client.get, ["/api/v1/executions"] * 40):
                assert found.status_code == 200
        with closing(psycopg.connect(shared_graph, autocommit=True)) as database:
            database.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'cut'"
            )
        client.get("/api/v1/executions")  # may be the one that finds out
        for _ in range(20):
            assert client.get("/api/v1/executions").status_code == 200
