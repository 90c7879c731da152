"""What is behind the server, through it: byte for byte, both ways."""

import asyncio
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.driver import Project
from tests.local.raw_http import WAIT, connect, receive_until, request_bytes
from tests.local.server import Server, run_server
from tests.local.upstream import TargetTable, read_head, respond_with, run_upstream

import clew
from clew.server.catalogue import proxy_traffic

NOWHERE = """
apiVersion: v1
kind: Config
current-context: away
contexts: [{name: away, context: {cluster: away, user: me}}]
clusters: [{name: away, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: me, user: {}}]
"""


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx2.Client]:
    with server.apps_client() as opened:
        yield opened


def test_a_target_gets_the_request_and_the_user_but_not_the_token(
    server: Server, table: TargetTable
) -> None:
    heard: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await read_head(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    with run_upstream(handler) as port, httpx2.Client() as client:
        table.add("notebook/me/heard", port)
        client.get(f"{server.address}/?token={server.token}")
        there = client.get(f"{server.address}/notebook/me/heard/").headers["location"]
        client.get(there)
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        assert len(client.cookies) == 2
        answer = client.get(
            f"{server.apps}/notebook/me/heard/a%2Fb/../c%20d"
            f"?token={server.token}&x=%41&&y&t=%{ord(server.token[0]):x}{server.token[1:]}&z=+",
            headers={
                "Referer": f"{server.apps}/notebook/me/heard/?a=%20&token={server.token}",
                "Cookie": f"theirs=1; {cookies}; __Host-clew-0badcafe=other; more=2",
                "Authorization": "token of-jupyter",
                "X-Forwarded-For": "6.6.6.6",
                "X-Forwarded-Proto": "gopher",
                "Forwarded": "for=6.6.6.6",
                "Connection": "keep-alive, X-Hop",
                "X-Hop": "1",
                "TE": "trailers",
                "X-Own": "kept",
            },
        )
        assert answer.status_code == 200
        client.cookies.clear()
        client.get(
            f"{server.apps}/notebook/me/heard/?token={server.token}",
            headers={"Authorization": f"Bearer {server.token}"},
        )
    first, second = (text.decode() for text in heard)
    line, *lines = first.split("\r\n")
    given = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
    assert re.fullmatch(r"GET /notebook/me/heard/\S*c%20d\?x=%41&&y&z=\+ HTTP/1.1", line)
    assert given["referer"] == f"{server.apps}/notebook/me/heard/?a=%20"
    assert given["cookie"] == "theirs=1; more=2"
    assert given["authorization"] == "token of-jupyter"
    assert given["host"] == given["x-forwarded-host"] == server.apps.removeprefix("http://")
    # Who is on this machine may be a proxy, and is believed; but for what cannot be.
    assert (given["x-forwarded-for"], given["x-forwarded-proto"]) == ("6.6.6.6", "http")
    assert given["x-own"] == "kept"
    assert not {"x-hop", "te", "forwarded", "connection"} & given.keys()
    for text in (first, second):
        assert server.token not in text
        assert not [value for value in client.cookies.values() if value in text]
    assert second.startswith("GET /notebook/me/heard/ HTTP/1.1\r\n")
    assert "x-forwarded-for: 127.0.0.1" in second
    assert "authorization" not in second.lower()
    assert "cookie" not in second.lower()


def test_addresses_are_rewritten_and_headers_set_where_the_target_wants_it(
    server: Server, client: httpx2.Client, table: TargetTable
) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(asked), asked))
        await writer.drain()

    with run_upstream(echo) as port:
        table.add(
            "notebook/me/top", port, 'rewrite = "/"\nheaders = {X-Root = "/notebook/me/top/"}'
        )
        table.add("tensorboard/me/deep", port, 'rewrite = "/a/b/"')
        table.add("pvcviewer/me/plain", port)
        top = client.get("/notebook/me/top/lab/x?y=1", headers={"X-Root": "mine"}).text
        deep = client.get("/tensorboard/me/deep/z").text
        plain = client.get("/pvcviewers/me/plain/z").text
        bare = client.get("/notebook/me/top?q=1", follow_redirects=False)
    assert top.startswith("GET /lab/x?y=1 HTTP/1.1\r\n")
    assert "X-Root: /notebook/me/top/" in top
    assert "mine" not in top
    assert "x-forwarded-prefix: /notebook/me/top" in top
    assert deep.startswith("GET /a/b/z HTTP/1.1\r\n")
    assert plain.startswith("GET /pvcviewers/me/plain/z HTTP/1.1\r\n")
    assert (bare.status_code, bare.headers["location"]) == (308, "/notebook/me/top/?q=1")


def test_an_answer_comes_as_it_is_made(client: httpx2.Client, table: TargetTable) -> None:
    taken = threading.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        assert await asyncio.to_thread(taken.wait, WAIT)
        writer.write(b"6\r\nsecond\r\n0\r\n\r\n")
        await writer.drain()

    with run_upstream(handler) as port:
        table.add("notebook/me/stream", port)
        with client.stream("GET", "/notebook/me/stream/") as answer:
            pieces = answer.iter_raw()
            assert next(pieces) == b"first"
            taken.set()
            assert b"".join(pieces) == b"second"


def test_requests_and_responses_are_streamed(server: Server, table: TargetTable) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_head(reader)
        assert b"transfer-encoding: chunked" in asked
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while size := int(await reader.readline(), 16):
            data = (await reader.readexactly(size + 2))[:-2].upper()
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    with run_upstream(echo) as port, connect(server, server.apps) as connection:
        table.add("notebook/me/echo", port)
        chunked = "Transfer-Encoding: chunked"
        connection.sendall(request_bytes(server, "POST /notebook/me/echo/", chunked))
        for word in (b"one", b"another"):
            connection.sendall(b"%x\r\n%s\r\n" % (len(word), word))
            receive_until(connection, word.upper())
        connection.sendall(b"0\r\n\r\n")
        receive_until(connection, b"0\r\n\r\n")


def test_answers_without_a_body_have_none(client: httpx2.Client, table: TargetTable) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asked := await read_head(reader):
            status = b"304 Not Modified" if b" /304 " in asked else b"200 OK"
            length = b"" if b" /204 " in asked else b"Content-Length: 7\r\n"
            status = b"204 No Content" if b" /204 " in asked else status
            writer.write(b"HTTP/1.1 %s\r\n%sETag: x\r\n\r\n" % (status, length))
            await writer.drain()

    with run_upstream(handler) as port:
        table.add("notebook/me/bodyless", port, 'rewrite = "/"')
        for _ in range(3):
            assert client.head("/notebook/me/bodyless/").headers["content-length"] == "7"
            assert client.get("/notebook/me/bodyless/304").status_code == 304
            assert client.get("/notebook/me/bodyless/204").status_code == 204


def test_a_response_delimited_by_close_is_complete(
    client: httpx2.Client, table: TargetTable
) -> None:
    with run_upstream(respond_with(b"HTTP/1.0 200 OK\r\n\r\nall there is")) as port:
        table.add("notebook/me/old", port)
        assert client.get("/notebook/me/old/").text == "all there is"


def test_a_connection_that_was_closed_while_it_waited_costs_nothing(
    client: httpx2.Client, table: TargetTable
) -> None:
    """The target keeps connections, as it says, but not always."""
    said = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"
    with run_upstream(respond_with(said)) as port:
        table.add("notebook/me/fickle", port)
        for _ in range(20):
            assert client.get("/notebook/me/fickle/").text == "ok"


def test_an_early_response_does_not_desynchronize_the_connection(
    server: Server, client: httpx2.Client, table: TargetTable
) -> None:
    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asked := await read_head(reader):
            method = asked.split()[0]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n%s" % method)
            if method == b"PUT":
                await reader.readexactly(10)

    with run_upstream(early) as port, connect(server, server.apps) as connection:
        table.add("notebook/me/early", port)
        connection.sendall(request_bytes(server, "PUT /notebook/me/early/", "Content-Length: 10"))
        receive_until(connection, b"\r\n\r\nPUT")
        assert client.get("/notebook/me/early/").text == "GET"


def test_a_target_cannot_set_cookies_or_policies_of_the_server(
    server: Server, client: httpx2.Client, table: TargetTable
) -> None:
    said = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: clew-12345678=x; Path=/\r\n"
        b"Set-Cookie: __Host-clew-1=x\r\nSet-Cookie: =clew-1=x\r\nSet-Cookie: Clew-apps-1=x\r\n"
        b'Strict-Transport-Security: max-age=9\r\nAlt-Svc: h3=":1"\r\n'
        b"Set-Cookie: theirs=1\r\nService-Worker-Allowed: /\r\nClear-Site-Data: *\r\n\r\n"
    )
    with run_upstream(respond_with(said)) as port:
        table.add("notebook/me/reaches", port)
        answer = client.get("/notebook/me/reaches/")
    client.cookies.clear()
    assert answer.headers.get_list("set-cookie") == ["theirs=1"]
    dropped = {"service-worker-allowed", "clear-site-data", "strict-transport-security", "alt-svc"}
    assert not dropped & set(answer.headers)


def test_a_viewer_cannot_take_over_a_route_of_the_server(tmp_path: Path) -> None:
    """Its cluster is away, so whatever it asks that for is 502."""
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(NOWHERE)
    with (
        run_server(Project(tmp_path, KUBECONFIG=str(nowhere)), "--on-cluster") as server,
        server.client() as client,
        server.apps_client() as apps,
    ):
        for path in ("shares/me/files/", "shares/me/files", "pvcviewer/me/files/", "api.x/a/b"):
            assert apps.get(f"/{path}").status_code == 502, path
            assert client.get(f"/{path}").headers["location"].startswith(server.apps)
            for address in (server.address, server.apps):
                assert httpx2.get(f"{address}/{path}").status_code == 401
        for first in ("api", "apis", "pipeline", "healthz", "readyz", "metrics"):
            assert client.get(f"/{first}/me/files/").status_code == 404, first
            assert apps.get(f"/{first}/me/files/").status_code == 404, first
        for first in ("volumes", "runs"):  # the web app's own pages
            assert client.get(f"/{first}/me/files/").status_code == 200, first
            assert apps.get(f"/{first}/me/files/").status_code == 404, first
        for path in ("/api/v1/executions", "/apis/v2beta1/runs", "/pipeline/apis/v2beta1/runs"):
            assert client.get(path).status_code == 200, path
            assert apps.get(path).status_code == 404, path


def test_servers_that_share_a_database_count_together(tmp_path: Path) -> None:
    project = Project(tmp_path)
    table = TargetTable(tmp_path / "targets.toml")
    targets = ("--targets", str(table.path))

    async def four(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await read_head(reader)).startswith(b"POST"):
            await reader.readexactly(9)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour")
        await writer.drain()

    with run_upstream(four) as port:
        table.add("tensorboard/me/shared", port)
        with run_server(project, *targets) as one, run_server(project, *targets) as other:
            for server in (one, other, other):
                with server.apps_client() as client:
                    assert client.get("/tensorboard/me/shared/").text == "four"
            with other.apps_client() as client:
                client.post("/tensorboard/me/shared/", content=b"nine more")
    with clew.open(project.folder) as opened:
        (found,) = proxy_traffic.list_traffic(opened.graph)
    assert (found.kind, found.namespace, found.name) == ("tensorboard", "me", "shared")
    assert (found.requests, found.sockets) == (4, 0)
    assert (found.bytes_in, found.bytes_out) == (9, 16)
    assert found.last_activity > 0


def test_a_malformed_table_is_refused_at_start(tmp_path: Path) -> None:
    project = Project(tmp_path)
    table = tmp_path / "targets.toml"
    for text in ('["notebook/x"]\naddress = "a:1"', '["notebook/a/b"]\naddress = "a"', "x = ["):
        table.write_text(text)
        ran = project.command("server", "--port", "0", "--targets", table)
        assert ran.returncode == 2, ran
        assert b"targets.toml" in ran.stderr


def test_a_table_that_becomes_malformed_is_reported(
    client: httpx2.Client, table: TargetTable
) -> None:
    good = table.path.read_text()
    table.path.write_text("nonsense")
    try:
        answer = client.get("/notebook/me/any/")
        assert (answer.status_code, answer.json()["code"]) == (502, "usage")
    finally:
        table.path.write_text(good)
    assert client.get("/notebook/me/any/").status_code == 404
