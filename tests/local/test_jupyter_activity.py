"""What a real Jupyter says of its use, and that asking it is none."""

import asyncio
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.local.test_server_websockets import jupyter
from tests.unit.kube.sample_resources import notebook

from clew.kube.culling.activity import ActivityProbe
from clew.kube.culling.idleness import Activity
from clew.kube.objects import Json, Key
from clew.kube.resources.notebooks import HEADERS, REWRITE

BASE = "/notebook/me/first/"
NOTEBOOK = notebook()
XSRF: dict[str, Any] = {"headers": {"X-XSRFToken": "beef"}, "cookies": {"_xsrf": "beef"}}


def asked(
    port: int, resource: Json = NOTEBOOK, traffic: dict[Key, datetime] | None = None
) -> Activity | None:
    async def go() -> Activity | None:
        async with httpx2.AsyncClient() as client:
            asking = ActivityProbe(client, lambda _: f"http://127.0.0.1:{port}")
            return await asking.activity(resource, traffic)

    return asyncio.run(go())


def test_probes_do_not_count_as_use_but_everything_else_does(tmp_path: Path) -> None:
    with jupyter(tmp_path / "home", BASE) as port:
        place = f"http://127.0.0.1:{port}{BASE}api"
        with httpx2.Client(**XSRF, timeout=60) as page:
            page.get(f"{place}/contents").raise_for_status()
            first = asked(port)
            assert first is not None
            assert first.last is not None
            assert not first.busy
            assert asked(port) == first, "asking moved the time"

            page.get(f"{place}/contents").raise_for_status()
            second = asked(port)
            assert second is not None
            assert second.last is not None
            assert second.last > first.last

            page.post(f"{place}/terminals").raise_for_status()
            terminal = page.get(f"{place}/terminals", params={"no_track_activity": "1"}).json()
            third = asked(port)
            assert third is not None
            assert third.last is not None
            written = datetime.fromisoformat(terminal[0]["last_activity"])
            assert third.last >= written.replace(tzinfo=UTC)

            page.post(f"{place}/kernels").raise_for_status()
            started = asked(port)
            assert started is not None
            assert started.busy, "a kernel that starts is not idle"


def test_what_does_not_answer_is_unknown_whatever_its_traffic() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert asked(port, traffic={Key("Notebook", "me", "first"): datetime.now(UTC)}) is None


@contextmanager
def other_server(status: int, body: bytes, at: str = "", needs: str = "") -> Iterator[int]:
    """It answers so at the addresses that end with `at`, and at all others with an empty list; to
    whom does not say `needs` in the header X-Word, it refuses."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            code, body = answer if path.endswith(at) else (200, b"[]")
            if self.headers.get("X-Word", "") != needs:
                code, body = 403, b""
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):  # who asks may not take all of it
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    answer = status, body
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "body"), [(404, b""), (200, b"<html>"), (302, b"")])
def test_servers_other_than_jupyter_are_judged_by_their_traffic(status: int, body: bytes) -> None:
    seen = datetime(2026, 3, 1, tzinfo=UTC)
    resource = notebook(annotations={REWRITE: "/"})
    with other_server(status, body) as port:
        assert asked(port, resource) is None, "nobody saw its traffic"
        assert asked(port, resource, {}) == Activity()
        key = Key("Notebook", "me", "first")
        assert asked(port, resource, {key: seen}) == Activity(last=seen)


@pytest.mark.parametrize("status", [503, 401, 403, 429])
@pytest.mark.parametrize("at", ["", "/kernels", "/terminals", "/status"])
def test_a_server_in_trouble_or_that_refuses_is_unknown(status: int, at: str) -> None:
    """A mesh may let us ask for the kernels alone, or for nothing."""
    with other_server(status, b"", at) as port:
        assert asked(port, traffic={}) is None


def test_requests_carry_the_configured_headers() -> None:
    with other_server(200, b"[]", needs="thread") as port:
        assert asked(port, traffic={}) is None
        for said, known in (("thread", True), ("yarn", False), ("\u0416", False)):
            resource = notebook(annotations={HEADERS: json.dumps({"X-Word": said})})
            assert (asked(port, resource, {}) is not None) == known


@pytest.mark.parametrize(
    "body", [b"[" + b" " * (2 << 20) + b"]", b"[" * 200_000], ids=["large", "deep"]
)
def test_an_answer_that_is_too_large_or_too_deep_is_ignored(body: bytes) -> None:
    """The operator serves the whole cluster: no notebook's author may take its memory."""
    with other_server(200, body) as port:
        assert asked(port, traffic={}) in (None, Activity())
        assert asked(port) is None


def test_an_answer_that_trickles_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One notebook must not keep all others from being looked at."""
    monkeypatch.setattr("clew.kube.culling.activity._TOTAL_SECONDS", 0.5)
    over = threading.Event()

    class Trickle(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(b"[")
                while not over.wait(0.1):
                    self.wfile.write(b" ")

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Trickle) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert asked(server.server_address[1], traffic={}) is None
        finally:
            over.set()
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("base", ["/../../../../secrets", "/..", "/secrets?", "/secrets#"])
def test_a_notebook_does_not_choose_what_the_operator_asks_for(base: str) -> None:
    """Where it asks through the API server, other addresses are answered to its own rights."""
    with other_server(200, b"[]") as port:
        assert asked(port, notebook(annotations={REWRITE: base}), {}) is None
