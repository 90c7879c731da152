"""WebSockets through the server: to a target that says what a test wants, and to a real Jupyter."""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.local.upstream import TargetTable, respond_with, run_upstream
from tests.wait import wait_until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

import clew
from clew.server.catalogue import proxy_traffic

WAIT = 120


@contextmanager
def behind(handler: Callable[[ServerConnection], None], **more: Any) -> Iterator[int]:
    with serve(handler, "127.0.0.1", 0, max_size=None, **more) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield listening.socket.getsockname()[1]
        finally:
            listening.shutdown()
            thread.join()


def opened(server: Server, path: str, **more: Any) -> ClientConnection:
    headers = {"Authorization": f"Bearer {server.token}", **more.pop("headers", {})}
    address = server.apps.replace("http://", "ws://") + path
    given: dict[str, Any] = {"max_size": None, "open_timeout": WAIT, "close_timeout": WAIT}
    return connect(address, additional_headers=headers, **{**given, **more})


def echo(connection: ServerConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        for message in connection:
            connection.send(message)


def test_messages_pass_in_both_directions(server: Server, table: TargetTable) -> None:
    large = secrets.token_bytes(8 << 20)
    with behind(echo, subprotocols=["v2", "v1"]) as port:
        table.add("notebook/me/echo", port)
        with opened(server, "/notebook/me/echo/x?y=1", subprotocols=["v1", "v2"]) as one:
            assert one.subprotocol == "v2"
            for message in ("text", "ünï\0", "", b"bytes\xff", b"", large):
                one.send(message)
                assert one.recv(WAIT) == message


def test_a_target_gets_the_request_but_not_the_token(server: Server, table: TargetTable) -> None:
    heard: list[tuple[str, Any]] = []

    def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        heard.append((connection.request.path, connection.request.headers))

    with behind(handler) as port:
        table.add("notebook/me/heard", port, 'rewrite = "/"')
        cookies = {"Cookie": "clew-12345678=x; theirs=1", "X-Own": "kept"}
        with (
            opened(
                server,
                f"/notebook/me/heard/a%20b?c=%64&token={server.token}&e",
                headers=cookies,
            ) as one,
            pytest.raises(ConnectionClosed),
        ):
            one.recv(WAIT)
    ((path, given),) = heard
    assert path == "/a%20b?c=%64&e"
    assert given["Host"] == server.apps.removeprefix("http://")
    assert given.get_all("Cookie") == ["theirs=1"]
    assert given["X-Own"] == "kept"
    assert given["X-Forwarded-Prefix"] == "/notebook/me/heard"
    assert "Authorization" not in given


def test_close_codes_pass_in_both_directions(server: Server, table: TargetTable) -> None:
    ended: list[tuple[int, str]] = []
    told = threading.Event()

    def handler(connection: ServerConnection) -> None:
        if connection.recv() == "end":
            connection.close(4321, "enough")
            return
        with pytest.raises(ConnectionClosed) as found:
            connection.recv()
        assert found.value.rcvd is not None
        ended.append((found.value.rcvd.code, found.value.rcvd.reason))
        told.set()

    with behind(handler) as port:
        table.add("notebook/me/ends", port)
        with opened(server, "/notebook/me/ends/") as one:
            one.send("end")
            with pytest.raises(ConnectionClosed) as found:
                one.recv(WAIT)
            assert found.value.rcvd is not None
            assert (found.value.rcvd.code, found.value.rcvd.reason) == (4321, "enough")
        with opened(server, "/notebook/me/ends/") as one:
            one.send("wait")
            one.close(4999, "bored")
        assert told.wait(WAIT)
    assert ended == [(4999, "bored")]


def test_a_lost_connection_closes_the_other_side(server: Server, table: TargetTable) -> None:
    lost = threading.Event()

    def handler(connection: ServerConnection) -> None:
        if connection.recv() == "die":
            connection.socket.shutdown(socket.SHUT_RDWR)
            return
        with pytest.raises(ConnectionClosed):
            connection.recv()
        lost.set()

    with behind(handler) as port:
        table.add("notebook/me/lost", port)
        with opened(server, "/notebook/me/lost/") as one:
            one.send("die")
            with pytest.raises(ConnectionClosed) as found:
                one.recv(WAIT)
            assert found.value.rcvd is not None
            assert found.value.rcvd.code == 1011
        with opened(server, "/notebook/me/lost/") as one:
            one.send("wait")
            one.socket.shutdown(socket.SHUT_RDWR)
            assert lost.wait(WAIT)


def test_a_refused_upgrade_returns_the_response_of_the_target(
    server: Server, table: TargetTable
) -> None:
    with run_upstream(
        respond_with(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
    ) as port:
        table.add("notebook/me/refuses", port)
        with pytest.raises(InvalidStatus) as found:
            opened(server, "/notebook/me/refuses/")
        assert (found.value.response.status_code, found.value.response.body) == (403, b"no")
    for path, status in (("refuses", 502), ("unknown", 404)):
        with pytest.raises(InvalidStatus) as found:
            opened(server, f"/notebook/me/{path}/")
        assert found.value.response.status_code == status


def test_upgrades_need_the_token_and_the_same_origin(server: Server, table: TargetTable) -> None:
    with behind(echo) as port, httpx2.Client() as browser:
        table.add("notebook/me/closed", port)
        browser.get(f"{server.address}/?token={server.token}")
        there = browser.get(f"{server.address}/notebook/me/closed/").headers["location"]
        cookie = browser.get(there).headers["set-cookie"].split(";")[0]
        address = f"{server.apps.replace('http', 'ws')}/notebook/me/closed/"
        foreign = {"Cookie": cookie, "Origin": server.address}
        for headers, status in (({}, 401), (foreign, 403), ({"Cookie": cookie}, 403)):
            with pytest.raises(InvalidStatus) as found:
                connect(address, additional_headers=headers, open_timeout=WAIT)
            assert found.value.response.status_code == status
        own = {"Cookie": cookie, "Origin": server.apps}
        with connect(address, additional_headers=own, open_timeout=WAIT) as one:
            one.send("in")
            assert one.recv(WAIT) == "in"


# -- a real Jupyter


@contextmanager
def jupyter(folder: Path, base: str, config: Path | None = None, **variables: str) -> Iterator[int]:
    """A Jupyter server with nothing but the proxy before it; `config`: a file that says who is let
    in, else everybody is."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder.mkdir()
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.base_url": base,
        "ServerApp.root_dir": folder,
        "ServerApp.allow_root": True,
        "ServerApp.open_browser": False,
        **({"config": config} if config else {"IdentityProvider.token": ""}),
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    environment = {**os.environ, "JUPYTER_PLATFORM_DIRS": "1", "HOME": str(folder)}
    environment |= variables
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *words],
            env=environment,
            stdout=log,
            stderr=log,
        ) as process,
    ):

        def answers() -> bool:
            assert process.poll() is None, (folder / "log").read_text()
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                return True
            return False

        try:
            wait_until("Jupyter", answers)
            yield port
        finally:
            process.terminate()
            process.wait(WAIT)


def as_its_page(server: Server) -> httpx2.Client:
    """A client that proves to Jupyter that it is no foreign page."""
    headers = {"Authorization": f"Bearer {server.token}", "X-XSRFToken": "beef"}
    return server.apps_client(headers=headers, cookies={"_xsrf": "beef"})


def execute(socket: ClientConnection, code: str) -> str:
    """Run code in a kernel as its own page does; what it printed."""
    asked = uuid.uuid4().hex
    header = {"msg_id": asked, "msg_type": "execute_request", "username": "", "session": asked}
    content = {"code": code, "silent": False, "store_history": False, "stop_on_error": True}
    document = {"header": {**header, "version": "5.3"}, "parent_header": {}, "metadata": {}}
    socket.send(json.dumps({**document, "content": content, "channel": "shell"}))
    printed, idle, replied = "", False, False
    while not (idle and replied):
        said = json.loads(socket.recv(WAIT))
        if said["parent_header"].get("msg_id") != asked:
            continue
        assert said["msg_type"] != "error", said["content"]
        if said["msg_type"] == "stream":
            printed += said["content"]["text"]
        idle |= said["msg_type"] == "status" and said["content"]["execution_state"] == "idle"
        replied |= said["msg_type"] == "execute_reply"
    return printed


def test_a_kernel_of_a_real_jupyter_answers_through_either_of_two_servers(
    tmp_path: Path, served: Project, table: TargetTable, server: Server
) -> None:
    base = "/notebook/me/lab/"
    with ExitStack() as stack:
        table.add("notebook/me/lab", stack.enter_context(jupyter(tmp_path / "home", base)))
        other = stack.enter_context(run_server(served, "--targets", str(table.path)))
        client = stack.enter_context(as_its_page(other))
        contents = f"{base}api/contents/data.txt"
        text = {"type": "file", "format": "text", "content": "from the proxy"}
        assert client.put(contents, json=text).status_code == 201
        kernel = client.post(f"{base}api/kernels", json={"name": "python3", "path": "/"})
        assert kernel.status_code == 201, kernel.text
        channels = f"{base}api/kernels/{kernel.json()['id']}/channels?session_id=here"
        with opened(other, channels) as one:
            assert execute(one, "x = 6 * 7; print(open('data.txt').read())") == "from the proxy\n"
            execute(one, "open('made.txt', 'w').write('by the kernel')")
        other.process.kill()  # with no time to say goodbye
        with opened(server, channels) as one:
            assert execute(one, "print(x)") == "42\n"
        with as_its_page(server) as asking:
            made = asking.get(f"{base}files/made.txt")
            assert made.text == "by the kernel"
            assert asking.delete(f"{base}api/kernels/{kernel.json()['id']}").status_code == 204

        def counted() -> bool:
            with clew.open(served.folder) as found:
                seen = {one.name: one for one in proxy_traffic.list_traffic(found.graph)}
            return "lab" in seen and seen["lab"].sockets >= 1 and seen["lab"].bytes_out > 100

        wait_until("the record", counted)
