"""Nothing is answered without the token, and the token goes nowhere."""

import asyncio
import os
import signal
import socket
import subprocess
from pathlib import Path

import httpx2
import pytest
from tests.driver import CLEW, Project
from tests.local.server import Server, run_server

import clew
from clew.server.app import build_app
from clew.server.http.client_limits import Limits
from clew.server.proxy.routing import Proxy
from clew.server.proxy.usage import UsageRecorder
from clew.server.server_state import Service

CLOSED = [
    "/",
    "/api/v1/executions",
    "/api/v1/executions/e1/events",
    "/api/v1/events",
    "/api/v1/content/records",
    "/api/v1/content/chunks",
    "/api/v1/openapi.json",
    "/apis/v2beta1/healthz",
    "/apis/v2beta1/runs",
    "/pipeline/apis/v2beta1/experiments",
    "/nothing/here",
    "/healthz/",
    "//healthz",
]


def nobody(server: Server, **headers: str) -> httpx2.Client:
    return httpx2.Client(base_url=server.address, headers=headers)


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS", "PROPFIND"])
def test_requests_without_identity_are_refused(server: Server, path: str, method: str) -> None:
    with nobody(server) as client:
        answer = client.request(method, server.address + path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    if "v2beta1" in path:
        assert answer.json().keys() == {"error", "code", "message", "details"}
        assert answer.json()["code"] == 16
    else:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "unauthorised"


def test_refused_requests_do_not_count_against_the_limit(tmp_path: Path) -> None:
    with clew.open(Project(tmp_path).folder) as opened:
        service = Service(opened.directory, opened.settings, "the token")
    proxy = Proxy(None, UsageRecorder(service), "the token")
    full = httpx2.ASGITransport(build_app(service, Limits(requests=0), proxy, None))

    async def ask(**headers: str) -> int:
        async with httpx2.AsyncClient(transport=full, base_url="http://here") as client:
            return (await client.get("/api/v1/executions", headers=headers)).status_code

    assert asyncio.run(ask()) == 401
    assert asyncio.run(ask(Authorization="Bearer the token")) == 503


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_health_and_metrics_are_open(server: Server, path: str) -> None:
    with nobody(server) as client:
        assert client.get(path).status_code == 200


@pytest.mark.parametrize(
    "authorization", ["Bearer wrong", "Bearer", "Basic {}", "{}", "Bearer {}x", "Bearer ünicode"]
)
def test_what_is_not_the_token_is_refused(server: Server, authorization: str) -> None:
    said = authorization.format(server.token).encode()
    with httpx2.Client(base_url=server.address, headers=[(b"authorization", said)]) as client:
        assert client.get("/api/v1/executions").status_code == 401


def test_the_address_that_is_printed_gives_a_cookie(server: Server) -> None:
    with nobody(server) as client:
        wrong = client.get("/?token=wrong")
        assert (wrong.status_code, wrong.cookies) == (401, {})
        first = client.get(f"/?token={server.token}&page=runs")
        assert (first.status_code, first.headers["location"]) == (303, "/?page=runs")
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert server.token not in cookie
        assert client.get("/api/v1/executions").status_code == 200


def test_every_answer_keeps_other_pages_away(server: Server) -> None:
    with server.client() as client:
        for path in ("/", "/api/v1/executions", "/nothing", "/metrics", "/notebook/a/b/"):
            given = client.get(path).headers
            assert given["x-content-type-options"] == "nosniff", path
            assert given["x-frame-options"] == "DENY", path
            assert given["cross-origin-resource-policy"] == "same-origin", path
            assert "frame-ancestors 'none'" in given["content-security-policy"], path
            assert "access-control-allow-origin" not in given, path


def test_a_cookie_is_valid_for_the_same_origin_only(server: Server) -> None:
    with nobody(server) as client:
        client.get(f"/?token={server.token}")

        def create(**headers: str) -> int:
            named = {"display_name": f"made with {headers}"}
            answer = client.post("/apis/v2beta1/experiments", json=named, headers=headers)
            return answer.status_code

        assert create() == 403
        assert create(Origin="http://elsewhere.example") == 403
        assert create(Origin="null") == 403
        assert create(Origin=server.address) == 200
        by_https = {"X-Forwarded-Proto": "https"}  # then a page that came by HTTP is another's
        assert create(Origin=server.address, **by_https) == 403
        assert create(Origin=server.address.replace("http:", "https:"), **by_https) == 200
        assert create(**{"Sec-Fetch-Site": "same-origin"}) == 200
        assert create(**{"Sec-Fetch-Site": "cross-site"}) == 403

        def read(**headers: str) -> int:
            return client.get("/api/v1/executions", headers=headers).status_code

        opened = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        framed = {**opened, "Sec-Fetch-Dest": "iframe"}
        assert read() == read(Origin=server.address) == 200
        assert read(Origin="http://elsewhere.example") == 403
        assert read(**{"Sec-Fetch-Site": "same-origin"}) == 200
        for site in ("same-site", "cross-site"):
            assert read(**{"Sec-Fetch-Site": site}) == 403
            assert read(**{"Sec-Fetch-Site": site, **framed}) == 403
            assert read(**{"Sec-Fetch-Site": site, **opened}) == 200, "a link, which shows it"


def test_the_token_of_the_environment_is_the_stronger_one(tmp_path: Path) -> None:
    project = Project(tmp_path, CLEW_TOKEN="of-the-environment")
    own = (project / ".clew/token").read_text().strip()
    with run_server(project) as server:
        assert server.token == "of-the-environment"
        with server.client() as client:
            assert client.get("/api/v1/executions").status_code == 200
        with nobody(server, Authorization=f"Bearer {own}") as client:
            assert client.get("/api/v1/executions").status_code == 401


def test_no_secret_is_in_the_log_or_in_what_tasks_find(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with run_server(project, "--runs", "1") as server:
        with server.client() as client:
            client.get(f"/?token={server.token}")
            client.get(f"/api/v1/executions?token={server.token}")
        children = [
            status.parent
            for status in Path("/proc").glob("[0-9]*/status")
            if f"\nPPid:\t{server.process.pid}\n" in _read(status)
        ]
        assert children, "its worker"
        for child in children:
            assert server.token not in _read(child / "environ") + _read(child / "cmdline")
    said = server.log.read_text()
    assert "/api/v1/executions" in said
    assert server.token not in said


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def test_a_port_that_is_taken_is_an_error_with_a_hint(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = project.command("server", "--port", str(taken.getsockname()[1]))
    assert ran.returncode == 1
    assert b"cannot listen on 127.0.0.1" in ran.stderr
    assert b"hint: clew server --port 0" in ran.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sigterm_shuts_the_server_down_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    project = Project(tmp_path)
    with run_server(project) as server:
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        below = [int(pid) for pid in children.read_text().split()]
        server.process.send_signal(number)
        assert server.process.wait(60) == 0
        assert not [pid for pid in below if os.path.exists(f"/proc/{pid}")]


def test_it_makes_a_project_where_there_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {n: v for n, v in os.environ.items() if not n.startswith("CLEW_")}
    with subprocess.Popen(
        [*CLEW, "server", "--port", "0"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        token = process.stdout.readline().decode().strip().partition("token=")[2]
        process.terminate()
        assert process.wait(60) == 0
    assert (folder / ".clew/token").read_text().strip() == token
    assert (folder / ".clew/token").stat().st_mode & 0o777 == 0o600
