"""The server takes events and content in whole or not at all."""

import gzip
import itertools
import json
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import blake3
import httpx2
import msgspec
import pytest
import zstandard
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.wait import wait_until

from clew.prov.events import AnyEvent, Content, Ended, Started, Version, to_batch, to_lines
from clew.server.ingest_transfers import MAX_REQUESTS

LINES = {"Content-Type": "application/x-ndjson"}
PACKED = {"Content-Type": "application/msgpack"}
GAP = b'{"event":"gap","execution":"%s","n":1,"at":1,"activity":"x","what":"","why":""}' % (
    b"ab" * 16
)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]) -> Project:
    return Project(tmp_path_factory.mktemp("there"), **graph_in_turn)


@pytest.fixture(scope="module")
def server(there: Project) -> Iterator[Server]:
    with run_server(there) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx2.Client]:
    with server.client() as made:
        yield made


@pytest.fixture
def uid() -> str:
    """Of an execution that no other test sends to the shared server."""
    return secrets.token_hex(16)


def execution(uid: str, *, content: str | None = None) -> list[AnyEvent]:
    """One that a witness of somebody else might tell of."""
    events: list[AnyEvent] = [
        Started(execution=uid, n=1, at=10, activity=uid, kind="execution", command=("x",)),
        Ended(execution=uid, n=9, at=20, activity=uid, status=0),
    ]
    if content is not None:
        version = Version("file://m/data", uid, 1)
        events.append(
            Content(
                execution=uid, n=2, at=15, version=version,
                digest=content, size=5, mode=0o100644, mtime=1,
            )
        )  # fmt: skip
    return events


def known(project: Project) -> list[dict[str, Any]]:
    """The executions in the project's own folder, oldest first, as its own command line tells."""
    found: list[dict[str, Any]] = json.loads(project.command("list", "--json").stdout)
    return found[::-1]


def sound(project: Project) -> None:
    """All that the record names is stored, and is what it says."""
    ran = project.command("fsck")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def name_of(data: bytes) -> str:
    return f"blake3:{blake3.blake3(data).hexdigest()}"


# -- events


def test_a_batch_that_is_sent_twice_is_folded_once(there: Project, client: httpx2.Client) -> None:
    uids = []
    for coding, packed in itertools.product(("", "zstd", "gzip"), (False, True)):
        uids.append(uid := secrets.token_hex(16))
        body = to_batch(execution(uid)) if packed else b"".join(to_lines(execution(uid)))
        headers = PACKED if packed else LINES
        if coding:
            body = gzip.compress(body) if coding == "gzip" else zstandard.compress(body)
            headers = {**headers, "Content-Encoding": coding}
        ids = set()
        for _ in range(2):
            answer = client.post("/api/v1/events", content=body, headers=headers)
            assert answer.status_code == 200, answer.text
            (told,) = answer.json()["executions"]
            ids.add(told.pop("id"))
            assert (answer.json()["events"], told) == (2, {"uid": uid, "name": None})
        assert len(ids) == 1
    found = [one for one in known(there) if one["uid"] in uids]
    assert [one["uid"] for one in found] == uids
    assert all((one["command"], one["state"]) == (["x"], "done") for one in found)


def test_a_last_line_without_newline_and_unknown_events(
    there: Project, client: httpx2.Client, uid: str
) -> None:
    lines = [*to_lines(execution(uid)), b'{"event":"dreamt","of":"sheep"}\n', b"\n"]
    body = b"".join(reversed(lines)).rstrip(b"\n")
    answer = client.post("/api/v1/events", content=body, headers=LINES)
    assert answer.json()["events"] == 2
    assert uid in [one["uid"] for one in known(there)]


def test_a_malformed_batch_changes_nothing(there: Project, client: httpx2.Client, uid: str) -> None:
    before = known(there)
    cases = [
        (b"nonsense", "line 3"),
        (b'{"event":"ended","execution":"%s"}' % (b"ab" * 16), "line 3"),
        (GAP.replace(b"ab" * 16, b"../../../etc"), "line 3"),
        (GAP.replace(b'"n":1', b'"n":1' + b"0" * 30), "event 3"),
        (b"[]", "line 3"),
        (b"\xff", "line 3"),
    ]
    for line, said in cases:
        body = b"".join(to_lines(execution(uid))) + line
        answer = client.post("/api/v1/events", content=body, headers=LINES)
        assert (answer.status_code, answer.json()["code"]) == (422, "malformed")
        assert said in answer.json()["title"]
        assert answer.headers["content-type"] == "application/problem+json"
    for body in (b"\x93", b"\x91\xc0", b"\xc1", b"{}", b""):
        answer = client.post("/api/v1/events", content=body, headers=PACKED)
        assert (answer.status_code, answer.json()["code"]) == (422, "malformed")
    assert known(there) == before


def test_a_batch_changes_no_other_execution_and_none_that_has_ended(
    there: Project, client: httpx2.Client, uid: str
) -> None:
    client.post("/api/v1/events", content=to_batch(execution(uid)), headers=PACKED)
    before = known(there)
    other = secrets.token_hex(16)
    forged = [
        Ended(execution=other, n=99, at=30, activity=uid, status=77),
        Ended(execution=uid, n=99, at=30, activity=uid, status=77),
    ]
    for event in forged:
        batch = to_batch([*execution(event.execution), event])
        answer = client.post("/api/v1/events", content=batch, headers=PACKED)
        assert (answer.status_code, answer.json()["code"]) == (409, "rejected")
        assert uid[:8] in answer.json()["title"]
    assert known(there) == before


def test_one_bad_event_in_messagepack_is_named(client: httpx2.Client, uid: str) -> None:
    good = msgspec.msgpack.decode(to_batch(execution(uid)))
    body = msgspec.msgpack.encode([*good, {"event": "gap"}])
    answer = client.post("/api/v1/events", content=body, headers=PACKED)
    assert "line 3" in answer.json()["title"]


def test_bodies_that_are_not_batches_are_refused(client: httpx2.Client) -> None:
    def status(content: bytes, **headers: str) -> int:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.post("/api/v1/events", content=content, headers=sent).status_code

    assert status(b"", Content_Type="text/plain") == 415
    assert status(b"", Content_Type="application/msgpack", Content_Encoding="br") == 415
    assert status(b"junk", Content_Type="application/msgpack", Content_Encoding="zstd") == 422
    bomb = zstandard.ZstdCompressor().compress(bytes(600 << 20))
    assert status(bomb, Content_Type="application/msgpack", Content_Encoding="zstd") == 413
    assert status(bytes(33 << 20), Content_Type="application/msgpack") == 413


# -- content


def test_events_without_their_content_are_refused(
    there: Project, client: httpx2.Client, uid: str
) -> None:
    data = b"hello"
    events = to_batch(execution(uid, content=name_of(data)))
    answer = client.post("/api/v1/events", content=events, headers=PACKED)
    assert (answer.status_code, answer.json()["code"]) == (409, "missing-content")
    assert uid not in [one["uid"] for one in known(there)]
    asked = {"contents": [name_of(data)], "chunks": [name_of(data)]}
    assert client.post("/api/v1/content/missing", json=asked).json() == asked
    put = client.put(f"/api/v1/content/{name_of(data)}", content=data, params={"for": "it"})
    assert put.status_code == 200
    assert client.post("/api/v1/content/missing", json=asked).json()["contents"] == []
    answer = client.post("/api/v1/events", content=events, headers=PACKED, params={"for": "it"})
    assert answer.status_code == 200, answer.text
    sound(there)
    assert there.command("cat", f"{uid}:file://m/data").stdout == data


def test_content_that_does_not_match_its_digest_is_refused(
    there: Project, client: httpx2.Client, tmp_path: Path
) -> None:
    wrong = client.put(f"/api/v1/content/{name_of(b'a')}", content=b"b")
    assert (wrong.status_code, wrong.json()["code"]) == (400, "usage")
    assert client.put("/api/v1/content/blake3:12", content=b"b").status_code == 400
    here = Project(tmp_path)
    here.sh("echo something that is packed")
    (pack, *_) = (here / ".clew/store/packs").iterdir()
    whole = pack.read_bytes()
    for spoilt in (b"", b"CLEWPAK1", whole[:-1], whole[:100] + b"?" + whole[101:], whole[9:]):
        answer = client.post("/api/v1/content", content=spoilt)
        assert (answer.status_code, answer.json()["code"]) == (400, "usage")
    assert client.post("/api/v1/content", content=whole).status_code == 200
    sound(there)


def test_too_many_requests_are_refused_with_retry_after(server: Server) -> None:
    place = urlsplit(server.address)
    head = (
        f"POST /api/v1/events HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 1000\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Type: application/msgpack\r\n\r\n"
    )
    with server.client() as client:

        def refused() -> bool:
            asked = client.post("/api/v1/events", content=b"\x90", headers=PACKED)
            if asked.status_code == 429:
                assert asked.headers["retry-after"].isdigit()
                assert asked.json()["code"] == "too-many-requests"
            return bool(asked.status_code == 429)

        assert not refused()
        idle = measured(server, "clew_http_requests_under_way")
        slow = [socket.create_connection((place.hostname, place.port)) for _ in range(MAX_REQUESTS)]
        try:
            for one in slow:
                one.sendall(head.encode())
            wait_until(
                "requests under way",
                lambda: measured(server, "clew_http_requests_under_way") == idle + MAX_REQUESTS,
            )
            assert refused()
        finally:
            for one in slow:
                one.close()
        wait_until("room", lambda: not refused())


def measured(server: Server, name: str) -> int:
    with server.client() as client:
        said = client.get("/metrics").text
    (line,) = (one for one in said.splitlines() if one.startswith(f"{name} "))
    return int(float(line.split()[1]))
