"""What is behind the server and does not come to its end: who is late, silent, slow or gone is told
to the other side, and nothing is left of it."""

import asyncio
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from tests.driver import Project
from tests.local.raw_http import WAIT, connect, receive_until, request_bytes
from tests.local.server import Server, run_server
from tests.local.upstream import TargetTable, read_head, respond_with, run_upstream
from tests.wait import wait_until


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx2.Client]:
    with server.apps_client() as opened:
        yield opened


@pytest.mark.parametrize(
    "begun",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ],
)
def test_a_truncated_response_is_an_error(
    server: Server, client: httpx2.Client, table: TargetTable, begun: bytes
) -> None:
    with run_upstream(respond_with(begun)) as port:
        table.add("notebook/me/dies", port)
        with (
            pytest.raises(httpx2.RemoteProtocolError),
            client.stream("GET", "/notebook/me/dies/") as answer,
        ):
            assert answer.status_code == 200
            answer.read()
    assert httpx2.get(f"{server.address}/healthz").status_code == 200


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"", "broken"),
        (b"SSH-2.0-what\r\n", "broken"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", "broken"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "broken"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n", "broken"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "broken"),
    ],
)
def test_a_malformed_response_is_reported(
    client: httpx2.Client, table: TargetTable, said: bytes, code: str
) -> None:
    with run_upstream(respond_with(said)) as port:
        table.add("notebook/me/odd", port)
        answer = client.get("/notebook/me/odd/")
    assert (answer.status_code, answer.json()["code"]) == (502, code)


def test_an_extra_response_is_discarded(client: httpx2.Client, table: TargetTable) -> None:
    one = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"
    with run_upstream(respond_with(one + b"one" + one + b"two")) as port:
        table.add("notebook/me/twice", port)
        for _ in range(3):
            answer = client.get("/notebook/me/twice/")
            assert (answer.status_code, answer.text) == (200, "one")


def test_an_unreachable_target_is_named_in_json_and_html(
    server: Server, client: httpx2.Client, table: TargetTable
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with run_upstream(silent) as port:
        table.add("notebook/me/late", port, "timeout = 0.2")
        assert client.get("/notebook/me/late/").status_code == 504
        assert client.post("/notebook/me/late/", content=b"x").status_code == 504
    table.add("notebook/me/gone", port)
    gone = client.get("/notebook/me/gone/")
    assert (gone.status_code, gone.headers["content-type"]) == (502, "application/problem+json")
    page = client.get("/notebook/me/gone/", headers={"Accept": "text/html,*/*"})
    assert page.headers["content-type"].startswith("text/html")
    assert "The notebook gone cannot be reached" in page.text
    assert page.headers["refresh"] == "3", "it opens as soon as it can be reached"
    for path in ("/notebook/me/nobody/", "/notebook/Me/x/", "/notebook/me", "/%6eotebook/me/gone/"):
        assert client.get(path).status_code == 404
    with httpx2.Client() as stranger:
        assert stranger.get(f"{server.apps}/notebook/me/gone/").status_code == 401


def test_a_client_that_disconnects_closes_the_target(server: Server, table: TargetTable) -> None:
    gone = threading.Event()
    began = threading.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_head(reader)
        if asked.startswith(b"GET"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
        began.set()
        try:
            while asked.startswith(b"GET"):
                writer.write(b"x" * 65536)
                await writer.drain()
            while await reader.read(65536):
                pass
        finally:
            gone.set()

    with run_upstream(endless) as port:
        table.add("notebook/me/endless", port)
        with connect(server, server.apps) as connection:
            connection.sendall(request_bytes(server, "GET /notebook/me/endless/"))
            receive_until(connection, b"xxxx")
        assert gone.wait(WAIT)
        gone.clear()
        began.clear()
        with connect(server, server.apps) as connection:
            length = "Content-Length: 1000000"
            connection.sendall(
                request_bytes(server, "POST /notebook/me/endless/", length) + b"some"
            )
            assert began.wait(WAIT)
        assert gone.wait(WAIT)


def _memory(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) << 10


def test_backpressure_reaches_the_target(server: Server, table: TargetTable) -> None:
    """What is not taken waits where it is: the server does not fetch it."""
    size = 256 << 20
    stuck = threading.Event()

    async def eager(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size >> 20):
            writer.write(b"x" * (1 << 20))
            try:
                async with asyncio.timeout(1):
                    await writer.drain()
            except TimeoutError:
                stuck.set()
                await writer.drain()

    with run_upstream(eager) as port, connect(server, server.apps) as connection:
        table.add("notebook/me/eager", port)
        before = _memory(server.process.pid)
        connection.sendall(request_bytes(server, "GET /notebook/me/eager/"))
        assert stuck.wait(WAIT)
        taken = len(receive_until(connection, b"\r\n\r\n").partition(b"\r\n\r\n")[2])
        while taken < size:
            taken += len(connection.recv(1 << 20))
    assert taken == size
    assert _memory(server.process.pid) - before < 32 << 20


def test_a_server_ends_though_something_is_under_way(tmp_path: Path) -> None:
    project = Project(tmp_path)
    table = TargetTable(tmp_path / "targets.toml")

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await reader.read()

    with run_upstream(half) as port:
        table.add("notebook/me/half", port)
        with (
            run_server(project, "--targets", str(table.path)) as server,
            connect(server, server.apps) as connection,
        ):
            connection.sendall(request_bytes(server, "GET /notebook/me/half/"))
            receive_until(connection, b"half")
            os.kill(server.process.pid, signal.SIGTERM)
            assert connection.recv(1) == b""
            assert server.stop() == 0


def test_nothing_is_left_of_what_was_cut(server: Server, table: TargetTable) -> None:
    """Whoever cuts, and when: afterwards the server holds as many connections as before."""

    async def moody(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_head(reader)
        if b"/dies" in asked:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf")
        elif b"/silent" not in asked:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 1000000)
            await reader.read()
        else:
            await reader.read()

    held = Path(f"/proc/{server.process.pid}/fd")

    def connections() -> int:
        found = 0
        for one in list(held.iterdir()):
            with suppress(FileNotFoundError):  # closed meanwhile
                found += "socket" in os.readlink(one)
        return found

    with run_upstream(moody) as port:
        table.add("notebook/me/moody", port)
        before = connections()
        for path in ("dies", "silent", "endless") * 10:
            with connect(server, server.apps) as connection:
                connection.sendall(request_bytes(server, f"GET /notebook/me/moody/{path}"))
                if path == "dies":
                    while connection.recv(65536):
                        pass
                elif path == "endless":
                    receive_until(connection, b"xxx")
        wait_until("all to be closed", lambda: connections() <= before)
