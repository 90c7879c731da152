"""Following runs and logs: live, cut off and taken up again, by many, and by those who dawdle."""

import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.driver import CLEW, Project
from tests.local.programs.compiling import HERE, run_script
from tests.local.server import Server, run_server

EVENTS = {"Accept": "text/event-stream"}
Event = dict[str, str]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> str:
    at = tmp_path_factory.mktemp("compiled") / "measuring.yaml"
    run_script(HERE / "measuring.py", at)
    return at.read_text()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """What the second task waits for."""
    return tmp_path / "gate"


def begun(client: httpx2.Client, spec: str, **parameters: Any) -> str:
    """The uid of a run that has been asked for."""
    made = client.post("/api/v1/runs", json={"spec": spec, "parameters": parameters})
    assert made.status_code == 201, made.text
    return str(made.json()["uid"])


@contextmanager
def following(
    client: httpx2.Client, path: str, last: str | None = None
) -> Iterator[Iterator[Event]]:
    headers = EVENTS | ({"Last-Event-ID": last} if last else {})
    with client.stream("GET", f"/api/v1/{path}", headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield events(response.iter_lines())


def events(lines: Iterator[str]) -> Iterator[Event]:
    found: Event = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            found[name] = value
        elif "data" in found:
            yield found
            found = {}
        else:
            found = {}


def until(feed: Iterator[Event], **wanted: str) -> list[Event]:
    """All events up to the first whose data holds this."""
    found = []
    for one in feed:
        found.append(one)
        data = json.loads(one["data"])
        if all(data.get(name) == value for name, value in wanted.items()):
            return found
    raise AssertionError(found)


def whole(client: httpx2.Client, path: str, last: str | None = None) -> list[Event]:
    with following(client, path, last) as feed:
        return list(feed)


def text(found: list[Event]) -> str:
    return "".join(json.loads(one["data"]).get("text", "") for one in found)


def waiting(client: httpx2.Client, uid: str) -> str:
    """The id of the run, once its second task has said that it waits."""
    end = time.monotonic() + 120
    while True:
        assert time.monotonic() < end
        found = client.get(f"/api/v1/runs/{uid}").json()
        if found["id"]:
            said = client.get(f"/api/v1/tasks/{found['id']}/judge/log")
            if "waiting for" in said.text:
                return str(found["id"])
        time.sleep(0.02)


def test_a_run_is_followed_from_before_it_begins(project: Project, spec: str, gate: Path) -> None:
    with run_server(project, "--runs", "2") as server, server.client() as client:
        uid = begun(client, spec, gate=str(gate))
        with following(client, f"runs/{uid}/events") as feed:
            first = until(feed, name="judge", state="running")
            gate.touch()
            rest = list(feed)
        assert (first[0]["event"], json.loads(first[0]["data"])["change"]) == ("run", "started")
        assert json.loads(rest[-1]["data"]) == {"state": "succeeded"}
        heard = [(one["event"], json.loads(one["data"])) for one in [*first, *rest[:-1]]]
        told = [(one["name"], one["change"]) for kind, one in heard if kind == "task"]
        assert sorted(told) == [
            (name, change) for name in ("judge", "train") for change in ("ended", "started")
        ]
        assert (heard[-1][0], heard[-1][1]["state"]) == ("run", "succeeded")
        ids = [int(one["id"]) for one in [*first, *rest[:-1]]]
        assert ids == sorted(set(ids))
        again = whole(client, f"runs/{uid}/events")
        assert [one.get("id") for one in again] == [one.get("id") for one in [*first, *rest]]
        for at, last in enumerate(ids[:-1]):
            left = whole(client, f"runs/{uid}/events", str(last))
            assert [int(one["id"]) for one in left[:-1]] == ids[at + 1 :]
        done = client.get(f"/api/v1/runs/{uid}/events", headers={"Last-Event-ID": str(ids[-1])})
        assert (done.status_code, done.content) == (204, b"")


def test_nothing_is_lost_or_doubled_by_a_new_server(
    project: Project, spec: str, gate: Path
) -> None:
    with run_server(project, "--runs", "2") as server, server.client() as client:
        uid = begun(client, spec, gate=str(gate))
        with following(client, f"runs/{uid}/events") as feed:
            first = until(feed, name="judge", state="running")
            assert server.stop() == 0
            first += list(feed)  # it ends as it should: no half events, no error
    assert all("id" in one for one in first)
    with run_server(project, "--runs", "2") as server, server.client() as client:
        with following(client, f"runs/{uid}/events", first[-1]["id"]) as feed:
            gate.touch()
            rest = list(feed)
        assert json.loads(rest[-1]["data"]) == {"state": "succeeded"}
        every = whole(client, f"runs/{uid}/events")
        assert [one.get("id") for one in every] == [one.get("id") for one in [*first, *rest]]


def test_events_of_an_unknown_run(project: Project) -> None:
    with run_server(project, "--runs", "2") as server, server.client() as client:
        for path in ("runs/r9/events", "tasks/r9/train/log"):
            assert client.get(f"/api/v1/{path}").status_code == 404


def test_a_log_is_followed_and_taken_up_again(project: Project, spec: str, gate: Path) -> None:
    with run_server(project, "--runs", "2") as server, server.client() as client:
        uid = begun(client, spec, gate=str(gate), rate=0.75)
        run = waiting(client, uid)
        at = f"tasks/{run}/judge/log"
        with following(client, at) as feed:
            attempt = next(feed)
            assert attempt["event"] == "attempt"
            first = next(feed)
            assert "waiting for" in json.loads(first["data"])["text"]
            with client.stream("GET", f"/api/v1/{at}", params={"follow": True}) as plain:
                gate.touch()
                followed = plain.read()
            rest = list(feed)
        assert rest[-1]["event"] == "end"
        stored = project.command("pipeline", "logs", f"{run}/judge").stdout
        assert (text([first, *rest]).encode(), followed) == (stored, stored)
        assert "ärgerlich" in stored.decode()
        left = whole(client, at, first["id"])
        assert text(left) == text(rest)
        assert client.get(f"/api/v1/{at}", params={"offset": 8}).content == stored[8:]
        assert client.get(f"/api/v1/tasks/{uid}/judge/log").content == stored
        assert "training with 0.75\n" in text(whole(client, f"tasks/{run}/train/log"))


def test_the_log_of_a_retried_task_restarts(project: Project, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    words = ["-p", f"folder={marks}", "-p", "kind=python", "-p", "tries=2"]
    command = [*CLEW, "pipeline", "run", "--on-host", HERE / "talking.py", *words]
    settings: dict[str, Any] = {"cwd": project.folder, "env": project.environment}
    at = "tasks/r1/condition-1/talk/log"
    with run_server(project, "--runs", "2") as server, server.client() as client:
        said = tmp_path / "said"
        with (
            said.open("wb") as log,
            subprocess.Popen(command, stderr=log, **settings) as by_hand,
        ):
            while "attempt 1" not in client.get(f"/api/v1/{at}").text:
                assert by_hand.poll() is None, said.read_text()
                time.sleep(0.05)
            with following(client, at) as feed:
                first = next(feed)
                Path(f"{marks}.go-1").touch()
                heard = []
                for one in feed:
                    heard.append(one)
                    if one.get("event") == "attempt":
                        Path(f"{marks}.go-2").touch()
            assert by_hand.wait(timeout=60) == 0
        starts = [n for n, one in enumerate(heard) if one.get("event") == "attempt"]
        assert (first["event"], len(starts)) == ("attempt", 1)
        assert "attempt 1" in text(heard[: starts[0]])
        stored = project.command("pipeline", "logs", "r1/talk").stdout
        assert text(heard[starts[0] :]).encode() == stored
        assert b"line 59999" in stored
        # Whoever was cut off while the first try went on hears the second from its beginning.
        assert text(whole(client, at, first["id"])).encode() == stored
        states = [json.loads(one["data"])["state"] for one in whole(client, "runs/r1/events")]
        assert states[-1] == "succeeded"


def test_many_follow_one_log(project: Project, spec: str, gate: Path) -> None:
    with run_server(project, "--runs", "2") as server, server.client() as client:
        run = waiting(client, begun(client, spec, gate=str(gate), rate=0.75))
        heard: list[str] = []
        ready = threading.Barrier(41)

        def listen() -> None:
            with server.client() as own, following(own, f"tasks/{run}/judge/log") as feed:
                found = [next(feed), next(feed)]
                ready.wait(60)
                heard.append(text([*found, *feed]))

        threads = [threading.Thread(target=listen) for _ in range(40)]
        for thread in threads:
            thread.start()
        ready.wait(60)
        gate.touch()
        for thread in threads:
            thread.join(60)
        stored = project.command("pipeline", "logs", f"{run}/judge").stdout.decode()
        assert heard == [stored] * 40


def test_a_slow_reader_does_not_block_others(project: Project) -> None:
    size = 30_000_000
    (project / "big.bin").write_bytes(b"clew" * (size // 4))
    project.sh("cat big.bin > /dev/null")
    with run_server(project, "--runs", "2") as server, server.client() as client:
        slow = [asked_slowly(server, project) for _ in range(50)]
        try:
            for _ in range(20):
                assert client.get("/api/v1/executions/e1").status_code == 200
            head, _, data = received(slow[0], 1000).partition(b"\r\n\r\n")
            assert b"HTTP/1.1 200" in head
            assert data.startswith(b"clewclew")
        finally:
            for one in slow:
                one.close()


def asked_slowly(server: Server, project: Project) -> socket.socket:
    """A connection that has asked for a large file, and reads none of it."""
    at = urlsplit(server.address)
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(60)
    made.connect((at.hostname, at.port))
    made.sendall(
        f"GET /api/v1/versions/e1:{project / 'big.bin'}/content HTTP/1.1\r\nHost: {at.netloc}\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n".encode()
    )
    return made


def received(made: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        data = made.recv(65536)
        assert data, found
        found += data
    return found


def test_an_answer_under_way_is_finished_when_the_server_ends(project: Project) -> None:
    size = 30_000_000
    (project / "big.bin").write_bytes(b"clew" * (size // 4))
    project.sh("cat big.bin > /dev/null")
    with (
        run_server(project, "--runs", "2") as server,
        closing(asked_slowly(server, project)) as made,
    ):
        head, _, data = received(made, 4000).partition(b"\r\n\r\n")
        server.process.terminate()
        found = len(data)
        while more := made.recv(1 << 20):
            found += len(more)
        assert f"content-length: {size}".encode() in head
        assert found == size
        assert server.stop() == 0
