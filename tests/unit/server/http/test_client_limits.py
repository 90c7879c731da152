"""Limits, held by a server that listens: asked through sockets, by clients of the worst kind."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from websockets.sync.client import connect

from clew.server.http.client_limits import Limits, RequestLimiter
from clew.server.http.client_timeouts import make_protocol

TIGHT = Limits(
    head_bytes=4096,
    head_seconds=0.3,
    write_seconds=0.3,
    body_bytes=1000,
    path_body_bytes={"/large": 100_000},
    json_containers=100,
    body_seconds=0.3,
    body_rate=1000,
    requests=2,
    streams=1,
)
PATIENT = replace(TIGHT, head_seconds=30, write_seconds=30, body_seconds=30)


class App:
    """Reads what it is sent and says how much that was; answers what its address asks for."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.cut = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": (await receive())["text"]})
            return
        if scope["type"] != "http":
            return
        taken, more = 0, scope["path"] != "/early"
        while more:
            message = await receive()
            taken += len(message.get("body", b""))
            more = message.get("more_body", False)
        kind = b"text/event-stream" if scope["path"] == "/stream" else b"text/plain"
        headers = [(b"content-type", kind)]
        if scope["path"] == "/names":
            headers += [(b"x-names", b" ".join(name for name, _ in scope["headers"]))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["path"] in ("/stream", "/wait"):
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
            await self.go.wait()
        if scope["path"] == "/endless":
            try:
                while True:
                    await send(
                        {"type": "http.response.body", "body": b"x" * 65536, "more_body": True}
                    )
                    if (await _peek(receive))["type"] == "http.disconnect":
                        return
            finally:
                self.cut.set()
        await send({"type": "http.response.body", "body": b"%d" % taken})


async def _peek(receive: Receive) -> dict[str, object]:
    try:
        async with asyncio.timeout(0):
            return dict(await receive())
    except TimeoutError:
        return {"type": "nothing"}


class Listening:
    def __init__(self, port: int, app: App, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.port = port
        self.app = app
        self._loop = loop

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def ask(self, data: bytes) -> bytes:
        """All that is answered until the server closes."""
        with closing(self.connect()) as made:
            made.sendall(data)
            return everything(made)

    def let_go(self) -> None:
        self._loop().call_soon_threadsafe(self.app.go.set)


def everything(made: socket.socket) -> bytes:
    found = b""
    while data := _received(made):
        found += data
    return found


def _received(made: socket.socket) -> bytes:
    try:
        return made.recv(65536)
    except ConnectionResetError:
        return b""


@contextmanager
def listening(limits: Limits) -> Iterator[Listening]:
    app = App()
    made = socket.create_server(("127.0.0.1", 0))
    loops: list[asyncio.AbstractEventLoop] = []
    config = uvicorn.Config(
        RequestLimiter(app, limits),
        http=make_protocol(limits),
        log_config=None,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        await server.serve(sockets=[made])

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield Listening(made.getsockname()[1], app, lambda: loops[0])
    finally:
        server.should_exit = True
        thread.join()
        made.close()


@pytest.fixture(scope="module")
def tight() -> Iterator[Listening]:
    with listening(TIGHT) as found:
        yield found


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode()


def post(path: str, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: here", *headers, "Connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_what_fits_is_taken(tight: Listening) -> None:
    said = tight.ask(post("/", "Content-Length: 1000") + b"x" * 1000)
    assert said.startswith(b"HTTP/1.1 200") and said.endswith(b"1000\r\n0\r\n\r\n")
    said = tight.ask(post("/large", "Content-Length: 50000") + b"x" * 50_000)
    assert b"50000" in said


def test_a_body_that_is_declared_too_large(tight: Listening) -> None:
    said = tight.ask(post("/", "Content-Length: 1001"))
    assert said.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in said


def test_a_body_that_turns_out_too_large(tight: Listening) -> None:
    said = tight.ask(
        post("/", "Transfer-Encoding: chunked") + (b"200\r\n" + b"x" * 512 + b"\r\n") * 2
    )
    assert said.startswith(b"HTTP/1.1 413")


def test_a_body_of_too_many_objects(tight: Listening) -> None:
    """Before it is parsed: 32 MB of `{}` would take a gigabyte and seconds."""
    many = b"[" + b"{}," * 99 + b"{}]"
    for path in ("/", "/api/v1/content/missing"):
        said = tight.ask(post(path, f"Content-Length: {len(many)}") + many)
        assert said.startswith(b"HTTP/1.1 413")
    for path in ("/api/v1/content", "/api/v1/events"):  # these are no documents
        said = tight.ask(post(path, f"Content-Length: {len(many)}") + many)
        assert said.startswith(b"HTTP/1.1 200")
    assert tight.ask(post("/", "Content-Length: 297") + many[:297]).startswith(b"HTTP/1.1 200")


def test_a_body_that_does_not_come(tight: Listening) -> None:
    said = tight.ask(post("/", "Content-Length: 10") + b"x")
    assert said.startswith(b"HTTP/1.1 408")


def test_a_body_that_trickles(tight: Listening) -> None:
    with closing(tight.connect()) as made:
        made.sendall(post("/", "Content-Length: 1000"))
        made.settimeout(0.02)
        said = b""
        for _ in range(1000):
            try:
                made.sendall(b"x")
                said += made.recv(65536)
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                break
            if b"\r\n\r\n" in said:
                break
    assert said.startswith(b"HTTP/1.1 408")


def test_a_head_that_does_not_come(tight: Listening) -> None:
    assert tight.ask(b"") == b""
    assert tight.ask(b"GET / HTT") == b""
    assert tight.ask(b"GET / HTTP/1.1\r\nHost: h") == b""


def test_a_second_head_that_does_not_come(tight: Listening) -> None:
    first = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
    said = tight.ask(first + b"GET / HT")
    assert said.count(b"HTTP/1.1 200") == 1


def test_a_head_that_is_too_long(tight: Listening) -> None:
    with closing(tight.connect()) as made:
        made.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nX-Long: " + b"x" * 5000)
        assert everything(made).startswith(b"HTTP/1.1 431")


def test_trailers_are_bounded_and_not_taken_for_headers(tight: Listening) -> None:
    asked = post("/", "Transfer-Encoding: chunked") + b"0\r\nX-Long: "
    with closing(tight.connect()) as made:
        made.sendall(asked)
        with pytest.raises(OSError):  # it is cut off
            for _ in range(1000):
                made.sendall(b"x" * 5000)
    many = (b"1\r\nx\r\n") * 900 + b"0\r\nX-Late: x\r\n\r\n"
    said = tight.ask(post("/names", "Transfer-Encoding: chunked") + many)
    assert said.startswith(b"HTTP/1.1 200") and b"x-late" not in said and b"900" in said


@pytest.mark.parametrize("late", [b"x", b"x" * 9, b"\r\n"])
def test_a_connection_is_not_held_by_what_comes_after_the_answer(
    tight: Listening, late: bytes
) -> None:
    """Neither by a body that nobody waited for, nor by empty lines between two requests."""
    length = 0 if late == b"\r\n" else 9
    asked = f"POST /early HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n\r\n"
    with closing(tight.connect()) as made:
        made.sendall(asked.encode())
        assert made.recv(65536).startswith(b"HTTP/1.1 200")
        made.sendall(late)
        everything(made)  # until the server closes it


def test_a_websocket_may_follow_a_request(tight: Listening) -> None:
    """It is not ended by the limits of requests."""
    with closing(tight.connect()) as made:
        made.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        while not made.recv(65536).endswith(b"0\r\n\r\n"):
            pass
        with connect("ws://here/", sock=made) as opened:
            time.sleep(3 * TIGHT.head_seconds)  # nothing happens: that is what is tested
            opened.send("still here")
            assert opened.recv() == "still here"


def test_who_takes_nothing_is_let_go(tight: Listening) -> None:
    tight.app.cut.clear()
    with closing(tight.connect()) as made:
        made.sendall(get("/endless"))
        assert tight.app.cut.wait(30)
        assert tight.ask(get("/")).startswith(b"HTTP/1.1 200")


def test_requests_over_the_limit_get_retry_after() -> None:
    with listening(PATIENT) as found, closing(found.connect()) as a, closing(found.connect()) as b:
        for made in (a, b):
            made.sendall(get("/wait"))
            while b"begun" not in made.recv(65536):
                pass
        refused = found.ask(get("/"))
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in refused
        assert found.ask(get("/healthz")).startswith(b"HTTP/1.1 200")
        found.let_go()
        assert everything(a).endswith(b"0\r\n\r\n")
        assert everything(b).endswith(b"0\r\n\r\n")
        assert found.ask(get("/")).startswith(b"HTTP/1.1 200")


def test_streams_are_counted_by_themselves() -> None:
    with listening(PATIENT) as found, closing(found.connect()) as made:
        asked = get("/stream").replace(b"\r\n\r\n", b"\r\nAccept: text/event-stream\r\n\r\n")
        made.sendall(asked)
        while b"begun" not in made.recv(65536):
            pass
        refused = found.ask(asked)
        assert refused.startswith(b"HTTP/1.1 503") and b"retry-after: 1" in refused
        assert found.ask(get("/")).startswith(b"HTTP/1.1 200")
        with closing(found.connect()) as second, closing(found.connect()) as third:
            for one in (second, third):  # whoever does not say so beforehand is a request
                one.sendall(get("/stream"))
                while b"begun" not in one.recv(65536):
                    pass
            assert found.ask(get("/")).startswith(b"HTTP/1.1 503")
        found.let_go()
