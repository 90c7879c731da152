"""A server outlives requests that are small to send and large to handle, and ends when told to."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import blake3
import pytest
import zstandard
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.wait import wait_until

from clew.prov.events import Ended, to_batch
from clew.server.ingest_transfers import MAX_REQUESTS
from clew.store.packs import pack_format

PACKED = {"Content-Type": "application/msgpack"}
TIMEOUT = 60.0
"""Seconds: the server promises 5, but a loaded machine needs more."""


@pytest.fixture
def there(tmp_path: Path) -> Project:
    return Project(tmp_path / "there")


@pytest.fixture
def server(there: Project) -> Iterator[Server]:
    with run_server(there) as started:
        yield started


def hole(size: int) -> bytes:
    """A pack of some 150 bytes with a content that is one hole."""
    parts = pack_format.pack_parts([(pack_format.HOLE, size)])
    file = pack_format.FileRecord(blake3.blake3(b"claimed").digest(), size, 0, parts)
    return pack_format.MAGIC + pack_format.encode_table(
        pack_format.Table([], [file]), position=len(pack_format.MAGIC)
    )


@contextmanager
def sent(server: Server, path: str, body: bytes, *, length: int = 0) -> Iterator[None]:
    """A request under way, of which the answer is not awaited."""
    place = urlsplit(server.address)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\n"
        f"Content-Length: {length or len(body)}\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n\r\n"
    )
    with socket.create_connection((place.hostname, place.port)) as made:
        made.sendall(head.encode() + body)
        yield


def memory(server: Server) -> int:
    """The most memory that the server has ever used, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def under_way(server: Server) -> float:
    with server.client() as client:
        told = client.get("/metrics").text.splitlines()
    return next(float(s.split()[-1]) for s in told if s.startswith("clew_http_requests_under_way "))


def await_under_way(server: Server, count: int) -> None:
    wait_until(f"{count} requests", lambda: under_way(server) >= count)


def end(server: Server) -> None:
    server.process.terminate()
    try:
        server.process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        pytest.fail("the server did not end")


def test_small_requests_that_are_large_to_handle_are_refused(server: Server) -> None:
    event = Ended(execution="ab" * 16, n=1, at=1, activity="x", facets={"x": None})
    many = b"\xdd\x01\x00\x00\x00" + b"\x90" * (16 << 20)
    bomb = to_batch([event]).replace(b"\xa1x\xc0", b"\xa1x" + many)
    before = memory(server)
    with server.client() as client:
        for size in (1 << 62, (1 << 64) - 1, pack_format.MAX_REPEATED + 1):
            body = hole(size)
            assert len(body) < 200
            answer = client.post("/api/v1/content", content=body)
            assert (answer.status_code, answer.json()["code"]) == (400, "usage"), answer.text
        for coding in ("zstd", ""):
            body = zstandard.compress(bomb) if coding else bomb
            headers = {**PACKED, "Content-Encoding": coding}
            answer = client.post("/api/v1/events", content=body, headers=headers)
            assert answer.status_code in (413, 422), answer.text
    assert memory(server) - before < 300


def test_the_work_of_a_client_that_is_gone_ends(server: Server) -> None:
    idle = under_way(server)
    with ExitStack() as clients:
        for _ in range(MAX_REQUESTS):
            clients.enter_context(sent(server, "/api/v1/content", hole(60 << 30)))
        await_under_way(server, int(idle) + MAX_REQUESTS)
        with server.client() as client:
            assert client.post("/api/v1/content", content=hole(1)).status_code == 429
    wait_until("its end", lambda: under_way(server) <= idle)
    with server.client() as client:
        assert client.post("/api/v1/content", content=hole(1)).status_code == 400


def test_it_ends_while_a_client_is_slow_to_send(server: Server) -> None:
    idle = under_way(server)
    with sent(server, "/api/v1/content", b"CLEW", length=1000):
        await_under_way(server, int(idle) + 1)
        end(server)


def test_it_ends_while_a_bomb_is_under_way(server: Server) -> None:
    idle = under_way(server)
    with ExitStack() as clients:
        for _ in range(2):
            clients.enter_context(sent(server, "/api/v1/content", hole(60 << 30)))
        await_under_way(server, int(idle) + 2)
        end(server)


def test_it_ends_while_a_thread_hangs(there: Project, server: Server) -> None:
    """It waits for a pipe that nobody writes to, where a pack should be."""
    data = os.urandom(1000)
    name = f"blake3:{blake3.blake3(data).hexdigest()}"
    with server.client() as client:
        assert client.put(f"/api/v1/content/{name}", content=data).status_code == 200
    (pack,) = (there / ".clew/store/packs").glob("*.pack")
    pack.unlink()
    os.mkfifo(pack)
    idle = under_way(server)
    body = json.dumps({"contents": [name]}).encode()
    with sent(server, "/api/v1/content/chunks", body):
        await_under_way(server, int(idle) + 1)
        end(server)
