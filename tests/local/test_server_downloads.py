"""What a server took it gives again, in the same shapes, to whoever has the token."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.driver import Project
from tests.local.server import Server, run_server

from clew.prov.events import from_batch, from_lines
from clew.prov.export.recorded_events import list_stored_digests
from clew.store.packs import pack_format

NOWHERE = f"blake3:{'0' * 64}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    project = Project(tmp_path_factory.mktemp("giving"))
    (project / "raw.txt").write_text("3\n1\n2\n")
    project.sh("sort raw.txt > sorted.txt")
    with run_server(project) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx2.Client]:
    with server.client() as client:
        yield client


def events(client: httpx2.Client) -> bytes:
    return client.get(
        "/api/v1/executions/e1/events", headers={"Accept": "application/msgpack"}
    ).content


def test_events_come_as_they_are_asked_for(client: httpx2.Client) -> None:
    lines = client.get("/api/v1/executions/e1/events")
    assert lines.headers["content-type"] == "application/x-ndjson"
    packed = from_batch(events(client))
    assert list(from_lines(lines.content.splitlines(keepends=True))) == packed
    assert len({event.execution for event in packed}) == 1


def test_another_server_takes_what_this_one_gives(client: httpx2.Client, tmp_path: Path) -> None:
    """Written with nothing but the two servers' routes."""
    batch = events(client)
    wanted = sorted(list_stored_digests(from_batch(batch)))
    other = Project(tmp_path)
    with run_server(other) as taking, taking.client() as there:
        named = {"params": {"for": "a-copy"}}
        missing = there.post("/api/v1/content/missing", json={"contents": wanted}, **named).json()
        records = client.post("/api/v1/content/records", json={"contents": missing["contents"]})
        table = pack_format.read_pack(records.content, where="here")
        parts = {part for file in table.files for part, _ in pack_format.unpack_parts(file.parts)}
        told = {file.digest for file in table.files}
        chunks = [f"blake3:{part.hex()}" for part in parts - {pack_format.HOLE}]
        alone = [d for d in missing["contents"] if bytes.fromhex(d[7:]) not in told]
        pack = client.post("/api/v1/content/chunks", json={"chunks": chunks, "contents": alone})
        for data in (pack.content, records.content):
            assert there.post("/api/v1/content", content=data, **named).status_code == 200
        kind = {"Content-Type": "application/msgpack"}
        folded = there.post("/api/v1/events", content=batch, headers=kind, **named)
        assert folded.json()["executions"][0]["id"] == "e1"
        sorted_ = there.get("/api/v1/executions/e1/files", params={"path": "sorted.txt"}).json()
        assert sorted_["files"][0]["role"] == "output"
    assert json.loads(other.command("fsck", "--json").stdout)["ok"]


@pytest.mark.parametrize(
    ("path", "asked", "status"),
    [
        ("records", {"contents": [NOWHERE]}, 404),
        ("chunks", {"chunks": [NOWHERE]}, 404),
        ("chunks", {"contents": [NOWHERE]}, 404),
        ("records", {"contents": ["no digest"]}, 400),
        ("chunks", {"chunks": 7}, 422),
        ("records", {}, 200),
        ("chunks", {}, 200),
    ],
)
def test_what_is_not_here_is_not_given(
    client: httpx2.Client, path: str, asked: dict[str, object], status: int
) -> None:
    answer = client.post(f"/api/v1/content/{path}", json=asked)
    assert answer.status_code == status
    if status != 200:
        assert answer.headers["content-type"] == "application/problem+json"


def test_unread_responses_do_not_count_against_the_limit(
    server: Server, client: httpx2.Client
) -> None:
    """More come and go than may be under way at once, and none of them reads its answer."""
    for _ in range(20):
        with (
            server.client() as careless,
            careless.stream("POST", "/api/v1/content/records", json={}) as answer,
        ):
            assert answer.status_code == 200
    assert client.post("/api/v1/content/records", json={}).status_code == 200
