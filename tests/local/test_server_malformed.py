"""Malformed requests: each is refused with a sentence, and none is a failure of the server."""

import os
from collections.abc import Iterator
from urllib.parse import quote

import httpx2
import pytest
from tests.driver import Project
from tests.local.raw_http import connect
from tests.local.server import Server, run_server
from tests.local.upstream import TargetTable

UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n"
)
FILES = (
    "/proc/self/mem",
    "/proc/self/task/../mem",
    "/proc/self/clear_refs",
    "/proc/self/pagemap",
    "/proc/kmsg",
    "/dev/zero",
    "/dev/stdin",
    "link",
    "pipe",
    "loop",
    "folder",
    "a\0b",
    "x" * 5000,
    "\ud800",
    "e1:" + "x" * 5000,
    "e1:a\0b",
    "e1:out.txt@9999999999999999",
    "e99999999999999999999",
    "e1.p٣",
    "blake3:zz",
)
ROUTES = (
    "lineage?target={}",
    "lineage/between?a=e1&b={}",
    "diff?a=e1&b={}",
    "versions?path={}",
    "versions/{}/content",
    "versions/{}/preview",
    "notes?target={}",
    "search?q={}",
    "executions/{}",
    "executions/e1/files?path={}",
    "runs/{}",
    "tasks/{}/t/log",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    project = Project(tmp_path_factory.mktemp("malformed"))
    project.sh("echo a > out.txt")
    os.mkfifo(project / "pipe")
    (project / "folder").mkdir()
    (project / "loop").symlink_to("loop")
    (project / "link").symlink_to("/proc/self/mem")
    table = TargetTable(project.folder.parent / "targets.toml")
    table.add("notebook/me/any", 9)
    with run_server(project, "--targets", str(table.path)) as running:
        yield running
    assert not [line for line in running.lines() if "traceback" in line]


@pytest.mark.parametrize("route", ROUTES)
def test_no_name_of_a_thing_fails_the_server(server: Server, route: str) -> None:
    with server.client() as client:
        for text in FILES:
            written = quote(text.encode("utf-8", "surrogatepass"), safe="")
            answer = client.get(f"/api/v1/{route.format(written)}")
            assert answer.status_code < 500, (text, answer.text)
            if text.startswith("/proc/self/mem") and route.startswith("lineage?"):
                assert answer.json()["code"] == "not-found"


@pytest.mark.parametrize("origin", ["http://[", "https://[::1", "null", "", "http://a:bad", "ÿ"])
def test_no_origin_fails_the_server(server: Server, origin: str) -> None:
    with httpx2.Client(base_url=server.address) as client:
        client.get("/", params={"token": server.token})
        for method in ("GET", "POST"):
            given = [(b"Origin", origin.encode("latin-1"))]
            answer = client.request(method, "/apis/v2beta1/experiments", headers=given)
            assert answer.status_code in (200, 403)
            assert method == "GET" or answer.status_code == 403


@pytest.mark.parametrize("path", ["/", "/api/v1/executions", "/notebook/me/any/"])
@pytest.mark.parametrize("more", ["", UPGRADE])
def test_a_request_needs_one_sound_host(server: Server, path: str, more: str) -> None:
    for hosts in ("a:bad", "[", "[::::]", "a:99999", "a:0", "a b", "a@b", "", "a\r\nHost: b", None):
        host = "" if hosts is None else f"Host: {hosts}\r\n"
        head = f"GET {path} HTTP/1.1\r\n{host}Authorization: Bearer {server.token}\r\n{more}"
        for address in (server.address, server.apps):
            with connect(server, address) as connection:
                connection.sendall(f"{head}\r\n".encode())
                assert connection.recv(65536).startswith(b"HTTP/1.1 400 "), (address, hosts)


@pytest.mark.parametrize(
    "line",
    [
        "GET /%00",
        "GET /%ff%fe",
        "GET /?token=%ff",
        "GET /?a=%zz",
        "GET //a",
        "GET *",
        "OPTIONS *",
        "GET http://[/",
        "GET /notebook/%2e%2e/x/",
        "GET /notebook/me/any%00/",
        "GET /notebook/me/any/#x",
        "TRACE /",
        "CONNECT a:1",
        "GET /api/v1/tasks/%ff/%fe/log",
        "GET /.clew/login?token=%ff&to=%ff",
        "GET /.clew/login?token=a.b.c&to=//elsewhere.example",
        "GET /.clew/login",
    ],
)
def test_no_address_fails_the_server(server: Server, line: str) -> None:
    for more in ("Connection: close\r\n", UPGRADE):
        head = f"{line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n{more}\r\n"
        for address in (server.address, server.apps):
            with connect(server, address) as connection:
                connection.sendall(head.encode())
                status = connection.recv(65536).split()[1]
                # 502: there is nothing behind notebook/me/any
                assert status[:1] in b"234" or status == b"502", status
