"""Events and content reach a server whole or not at all, whoever is killed."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
from clew.server.ingest_limits import MAX_REQUESTS

LINES = {"Content-Type": "application/x-ndjson"}
PACKED = {"Content-Type": "application/msgpack"}
GAP = b'{"event":"gap","execution":"%s","n":1,"at":1,"activity":"x","what":"","why":""}' % (
    b"ab" * 16
)


@pytest.fixture
def there(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    return Project(tmp_path / "there", **graph_in_turn)


@pytest.fixture
def server(there: Project) -> Iterator[Server]:
    with run_server(there) as started:
        yield started


@pytest.fixture
def client(server: Server) -> Iterator[httpx2.Client]:
    with server.client() as made:
        yield made


@pytest.fixture
def here(tmp_path: Path, server: Server) -> Project:
    return sender(tmp_path / "here", server)


def sender(folder: Path, server: Server) -> Project:
    """A project that sends what it records to the server."""
    project = Project(folder)
    project.environment |= {"CLEW_SERVER": server.address, "CLEW_TOKEN": server.token}
    return project


def execution(uid: str = "ab" * 16, *, content: str | None = None) -> list[AnyEvent]:
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
    """The executions that are in the project's own folder, as its own command line tells."""
    found: list[dict[str, Any]] = json.loads(project.command("list", "--json").stdout)
    return found


def sent(execution: dict[str, Any]) -> dict[str, Any]:
    """How the server shows an execution that a client recorded and sent."""
    return {**execution, "made_elsewhere": True}


def sound(project: Project) -> None:
    """All that the record names is stored, and is what it says."""
    ran = project.command("fsck")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def name_of(data: bytes) -> str:
    return f"blake3:{blake3.blake3(data).hexdigest()}"


# -- events


def test_a_batch_is_folded_once_however_often_it_comes(
    there: Project, client: httpx2.Client
) -> None:
    kinds = itertools.product(("", "zstd", "gzip"), (False, True))
    for number, (coding, packed) in enumerate(kinds, 1):
        uid = f"{number:032x}"
        body = to_batch(execution(uid)) if packed else b"".join(to_lines(execution(uid)))
        headers = PACKED if packed else LINES
        if coding:
            body = gzip.compress(body) if coding == "gzip" else zstandard.compress(body)
            headers = {**headers, "Content-Encoding": coding}
        for _ in range(2):
            answer = client.post("/api/v1/events", content=body, headers=headers)
            assert answer.status_code == 200, answer.text
            told = {"uid": uid, "id": f"e{number}", "name": None}
            assert answer.json() == {"events": 2, "executions": [told]}
    found = known(there)
    assert [one["uid"] for one in found] == [f"{number:032x}" for number in range(1, 7)]
    assert all((one["command"], one["state"]) == (["x"], "done") for one in found)


def test_a_last_line_needs_no_end_and_unknown_events_are_passed_over(
    there: Project, client: httpx2.Client
) -> None:
    lines = [*to_lines(execution()), b'{"event":"dreamt","of":"sheep"}\n', b"\n"]
    body = b"".join(reversed(lines)).rstrip(b"\n")
    answer = client.post("/api/v1/events", content=body, headers=LINES)
    assert answer.json()["events"] == 2
    assert len(known(there)) == 1


def test_a_malformed_batch_changes_nothing(there: Project, client: httpx2.Client) -> None:
    cases = [
        (b"nonsense", "line 3"),
        (b'{"event":"ended","execution":"%s"}' % (b"ab" * 16), "line 3"),
        (GAP.replace(b"ab" * 16, b"../../../etc"), "line 3"),
        (GAP.replace(b'"n":1', b'"n":1' + b"0" * 30), "event 3"),
        (b"[]", "line 3"),
        (b"\xff", "line 3"),
    ]
    for line, said in cases:
        body = b"".join(to_lines(execution())) + line
        answer = client.post("/api/v1/events", content=body, headers=LINES)
        assert (answer.status_code, answer.json()["code"]) == (422, "malformed")
        assert said in answer.json()["title"]
        assert answer.headers["content-type"] == "application/problem+json"
    for body in (b"\x93", b"\x91\xc0", b"\xc1", b"{}", b""):
        answer = client.post("/api/v1/events", content=body, headers=PACKED)
        assert (answer.status_code, answer.json()["code"]) == (422, "malformed")
    assert known(there) == []


def test_a_batch_changes_no_other_execution_and_none_that_has_ended(
    there: Project, client: httpx2.Client
) -> None:
    client.post("/api/v1/events", content=to_batch(execution()), headers=PACKED)
    before = known(there)
    uid, other = "ab" * 16, "cd" * 16
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


def test_one_bad_event_in_messagepack_is_named(client: httpx2.Client) -> None:
    good = msgspec.msgpack.decode(to_batch(execution()))
    body = msgspec.msgpack.encode([*good, {"event": "gap"}])
    answer = client.post("/api/v1/events", content=body, headers=PACKED)
    assert "line 3" in answer.json()["title"]


def test_what_is_no_batch_is_refused(client: httpx2.Client) -> None:
    def status(content: bytes, **headers: str) -> int:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.post("/api/v1/events", content=content, headers=sent).status_code

    assert status(b"", Content_Type="text/plain") == 415
    assert status(b"", Content_Type="application/msgpack", Content_Encoding="br") == 415
    assert status(b"junk", Content_Type="application/msgpack", Content_Encoding="zstd") == 422
    bomb = zstandard.ZstdCompressor().compress(bytes(600 << 20))
    assert status(bomb, Content_Type="application/msgpack", Content_Encoding="zstd") == 413
    assert status(bytes(33 << 20), Content_Type="application/msgpack") == 413


def test_nobody_sends_without_the_token(server: Server) -> None:
    body = b"".join(to_lines(execution()))
    answer = httpx2.post(f"{server.address}/api/v1/events", content=body, headers=LINES)
    assert answer.status_code == 401


# -- content


def test_events_are_taken_only_with_the_content_they_name(
    there: Project, client: httpx2.Client
) -> None:
    data = b"hello"
    events = to_batch(execution(content=name_of(data)))
    answer = client.post("/api/v1/events", content=events, headers=PACKED)
    assert (answer.status_code, answer.json()["code"]) == (409, "missing-content")
    assert known(there) == []
    asked = {"contents": [name_of(data)], "chunks": [name_of(data)]}
    assert client.post("/api/v1/content/missing", json=asked).json() == asked
    put = client.put(f"/api/v1/content/{name_of(data)}", content=data, params={"for": "it"})
    assert put.status_code == 200
    assert client.post("/api/v1/content/missing", json=asked).json()["contents"] == []
    answer = client.post("/api/v1/events", content=events, headers=PACKED, params={"for": "it"})
    assert answer.status_code == 200, answer.text
    sound(there)
    assert there.command("cat", "e1:file://m/data").stdout == data


def test_content_that_is_not_what_it_says_is_refused(
    there: Project, client: httpx2.Client, here: Project
) -> None:
    wrong = client.put(f"/api/v1/content/{name_of(b'a')}", content=b"b")
    assert (wrong.status_code, wrong.json()["code"]) == (400, "usage")
    assert client.put("/api/v1/content/blake3:12", content=b"b").status_code == 400
    here.environment.pop("CLEW_SERVER")
    here.sh("echo something that is packed")
    (pack, *_) = (here / ".clew/store/packs").iterdir()
    whole = pack.read_bytes()
    for spoilt in (b"", b"CLEWPAK1", whole[:-1], whole[:100] + b"?" + whole[101:], whole[9:]):
        answer = client.post("/api/v1/content", content=spoilt)
        assert (answer.status_code, answer.json()["code"]) == (400, "usage")
    assert client.post("/api/v1/content", content=whole).status_code == 200
    sound(there)


def test_a_sweep_leaves_what_is_on_its_way(there: Project, client: httpx2.Client) -> None:
    kept, dropped = b"kept for a transfer", b"of nobody"
    client.put(f"/api/v1/content/{name_of(kept)}", content=kept, params={"for": "it"})
    client.put(f"/api/v1/content/{name_of(dropped)}", content=dropped)
    freed = json.loads(there.command("gc", "--yes", "--json").stdout)
    assert freed["files"] == 1
    asked = {"contents": [name_of(kept), name_of(dropped)]}
    missing = client.post("/api/v1/content/missing", json=asked).json()["contents"]
    assert missing == [name_of(dropped)]
    events = to_batch(execution(content=name_of(kept)))
    sent = client.post("/api/v1/events", content=events, headers=PACKED, params={"for": "it"})
    assert sent.status_code == 200
    assert there.command("gc", "--yes").stderr == b"nothing to free\n"


# -- what exec sends


def test_exec_sends_what_it_recorded(there: Project, here: Project) -> None:
    (here / "in").write_bytes(random.Random(1).randbytes(3 << 20))
    recorded = here.sh("cat in in > out; echo said", options=("--name", "first"))
    assert recorded.out == b"said\n"
    (found,) = known(there)
    own = json.loads(here.command("list", "--json", env=_alone(here)).stdout)
    assert [found] == [sent(one) for one in own]
    sound(there)
    for version in ("first:in@input", "e1:out", "e1:stdout"):
        assert there.command("cat", version).stdout == here.command("cat", version).stdout
    assert there.command("gc", "--yes").stderr == b"nothing to free\n"
    assert not list((here / ".clew/unsent").iterdir())


def test_only_what_is_missing_travels(tmp_path: Path, server: Server, here: Project) -> None:
    data = random.Random(2).randbytes(8 << 20)
    (here / "in").write_bytes(data)
    here.sh("cat in > /dev/null")
    first = _taken(server)
    assert first > len(data)
    (here / "in").write_bytes(data[: 4 << 20] + b"changed" + data[4 << 20 :])
    here.sh("cat in > /dev/null")
    assert 0 < _taken(server) - first < 1 << 20
    second = _taken(server)
    other = sender(tmp_path / "other", server)
    (other / "in").write_bytes(data)
    other.sh("cat in > /dev/null")
    assert _taken(server) == second  # somebody else's bytes are there already


def test_the_status_and_the_streams_stay_the_commands(there: Project, here: Project) -> None:
    ran = here.command("exec", "--", "sh", "-c", "cat; echo err >&2; exit 7", input=b"typed")
    assert (ran.returncode, ran.stdout) == (7, b"typed")
    assert ran.stderr.startswith(b"err\nclew: e1 failed with status 7")
    assert ran.stderr.endswith(b", sent as e1\n")
    assert known(there)[0]["status"] == 7


def test_what_cannot_be_sent_waits(there: Project, here: Project) -> None:
    good = dict(here.environment)
    cases = [
        {"CLEW_SERVER": "http://127.0.0.1:1"},
        {"CLEW_SERVER": "http://no-such-host.invalid"},
        {"CLEW_TOKEN": "not-the-token"},
        {"CLEW_SERVER": "ftp://example.org"},
    ]
    for wrong in cases:
        here.environment = {**good, **wrong}
        ran = here.command("exec", "--", "sh", "-c", "echo out; exit 3")
        assert (ran.returncode, ran.stdout) == (3, b"out\n")
        assert b", not sent yet: " in ran.stderr
        assert b"not-the-token" not in ran.stderr
        assert good["CLEW_TOKEN"].encode() not in ran.stderr
    told = json.loads(here.command("exec", "--json", "--", "true").stderr)
    assert told["waiting"]
    assert "sent" not in told
    assert known(there) == []
    here.environment = good
    told = json.loads(here.command("exec", "--json", "--", "true").stderr)
    assert told["sent"] == {"server": good["CLEW_SERVER"], "id": "e6"}
    assert [found["status"] for found in known(there)] == [3, 3, 3, 3, 0, 0]


def test_a_server_that_hangs_is_not_waited_for(
    there: Project, here: Project, server: Server
) -> None:
    (here / "in").write_bytes(random.Random(5).randbytes(8 << 20))  # more than a socket takes
    server.process.send_signal(signal.SIGSTOP)
    try:
        ran = here.command("exec", "--", "sh", "-c", "cat in; exit 3", timeout=30)
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert ran.returncode == 3
    assert b"did not answer in time" in ran.stderr
    here.command("list")
    assert [found["status"] for found in known(there)] == [3]
    whole(here, there)


def test_a_server_that_answers_byte_by_byte_is_not_waited_for(here: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle() -> None:
            with suppress(OSError):
                connected, _ = listening.accept()
                with connected:
                    for byte in itertools.chain(b"HTTP/1.1 200 OK\r\n", itertools.repeat(65)):
                        connected.send(bytes([byte]))
                        time.sleep(0.1)

        trickling = threading.Thread(target=trickle)
        trickling.start()
        here.environment["CLEW_SERVER"] = f"http://127.0.0.1:{listening.getsockname()[1]}"
        ran = here.command("exec", "--", "true", timeout=30)
        assert b"did not answer in time" in ran.stderr
    trickling.join()


def test_a_server_that_takes_an_upload_slowly_is_not_waited_for(
    there: Project, here: Project, server: Server
) -> None:
    """A proxy passes questions on, and takes 4 KiB of content every 10 ms: 20 s for all of it."""
    (here / "in").write_bytes(random.Random(6).randbytes(8 << 20))
    good, cut = here.environment["CLEW_SERVER"], threading.Event()

    def slowly(connected: socket.socket) -> None:
        with suppress(OSError), connected:
            upstream = socket.create_connection(("127.0.0.1", int(good.rsplit(":")[-1])))
            with upstream:
                threading.Thread(target=_copy, args=(upstream, connected), daemon=True).start()
                while data := connected.recv(4096):
                    upstream.sendall(data)
                    time.sleep(0.01)
        cut.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        accepting = threading.Thread(target=_accept, args=(listening, slowly), daemon=True)
        accepting.start()
        here.environment["CLEW_SERVER"] = f"http://127.0.0.1:{listening.getsockname()[1]}"
        ran = here.command("exec", "--", "sh", "-c", "cat in > out; exit 3")
        assert ran.returncode == 3
        assert b"did not answer in time" in ran.stderr
        assert cut.wait(30)  # the client has closed the connection
    assert known(there) == []
    here.environment["CLEW_SERVER"] = good
    here.command("list")
    assert [found["status"] for found in known(there)] == [3]
    whole(here, there)


def _accept(listening: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    with suppress(OSError):
        while True:
            connected, _ = listening.accept()
            threading.Thread(target=serve, args=(connected,), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)


def test_any_next_command_sends_what_waits(there: Project, here: Project) -> None:
    good = here.environment["CLEW_SERVER"]
    here.environment["CLEW_SERVER"] = "http://127.0.0.1:1"
    here.command("exec", "--", "true")
    here.environment["CLEW_SERVER"] = good
    assert len(json.loads(here.command("list", "--json").stdout)) == 1
    own = json.loads(here.command("list", "--json", env=_alone(here)).stdout)
    assert known(there) == [sent(one) for one in own]


def test_what_was_forgotten_here_is_not_sent(there: Project, here: Project) -> None:
    good = here.environment["CLEW_SERVER"]
    here.environment["CLEW_SERVER"] = "http://127.0.0.1:1"
    here.command("exec", "--", "true")
    here.command("exec", "--", "false")
    here.command("rm", "e1", "--yes", env=_alone(here))
    here.environment["CLEW_SERVER"] = good
    here.command("list")
    assert [found["command"] for found in known(there)] == [["false"]]
    assert not list((here / ".clew/unsent").iterdir())


def test_an_execution_within_another_is_sent_once(there: Project, here: Project) -> None:
    here.command("exec", "--", sys.executable, "-m", "clew", "exec", "--", "true")
    assert len(known(there)) == 1


# -- killed


def test_the_client_is_killed_at_any_moment(there: Project, here: Project) -> None:
    chance = random.Random(3)
    for turn in range(4):
        (here / "in").write_bytes(chance.randbytes(8 << 20))
        running = here.start_exec("sh", "-c", f"cat in > out; exit {turn}")
        time.sleep(chance.uniform(0.1, 1.5))  # the moment of the kill is what is being varied
        running.kill()
        running.communicate()
        whole(here, there)
    here.sh("true")
    uids = _uids(here)
    assert [found["uid"] for found in known(there)] == uids
    whole(here, there)
    assert not list((here / ".clew/unsent").iterdir())


def test_the_server_is_killed_at_any_moment(tmp_path: Path, there: Project) -> None:
    chance = random.Random(4)
    here = None
    for turn in range(4):
        with run_server(there) as server:
            here = here or sender(tmp_path / "here", server)
            here.environment["CLEW_SERVER"] = server.address
            (here / "in").write_bytes(chance.randbytes(8 << 20))
            running = here.start_exec("sh", "-c", f"cat in > out; exit {turn}")
            time.sleep(chance.uniform(0.3, 1.5))  # the moment of the kill is what is being varied
            server.process.send_signal(signal.SIGKILL)
            done = here.finish_exec(running)
            assert done.status == turn  # the command's own, whatever became of the server
        whole(here, there)
    assert here is not None
    with run_server(there) as server:
        here.environment["CLEW_SERVER"] = server.address
        here.sh("true")
    assert [found["uid"] for found in known(there)] == _uids(here)
    whole(here, there)


def whole(here: Project, there: Project) -> None:
    """What is there is there entirely, and once: as it is here."""
    sound(there)
    alone = _alone(here)
    for found in known(there):
        shown = json.loads(there.command("show", found["uid"], "--detail", "--json").stdout)
        own = here.command("show", found["uid"], "--detail", "--json", env=alone).stdout
        assert _without_ids(shown) == _without_ids(sent(json.loads(own)))


def _without_ids(shown: dict[str, Any]) -> str:
    """A document, whatever number the execution has."""
    return json.dumps(shown).replace(f'"{shown["id"]}', '"e')


# -- many at once


def test_when_too_much_is_under_way_others_come_again(server: Server) -> None:
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
        idle = _measured(server, "clew_http_requests_under_way")
        slow = [socket.create_connection((place.hostname, place.port)) for _ in range(MAX_REQUESTS)]
        try:
            for one in slow:
                one.sendall(head.encode())
            wait_until(
                "requests under way",
                lambda: _measured(server, "clew_http_requests_under_way") == idle + MAX_REQUESTS,
            )
            assert refused()
        finally:
            for one in slow:
                one.close()
        wait_until("room", lambda: not refused())


def test_of_many_senders_nothing_is_lost(tmp_path: Path, there: Project, server: Server) -> None:
    senders = [sender(tmp_path / f"here{n}", server) for n in range(3)]

    def send(project: Project) -> list[str]:
        commands = [[*("exec", "--json", "--", "sh", "-c", f"echo {n} > {n}")] for n in range(4)]
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "clew", *words],
                cwd=project.folder, env=project.environment, stderr=subprocess.PIPE,
            )
            for words in commands
        ]  # fmt: skip
        told = [json.loads(one.communicate()[1]) for one in running]
        assert all("sent" in one or "waiting" in one for one in told)
        return [one["uid"] for one in told]

    with ThreadPoolExecutor(len(senders)) as pool:
        made = [uid for uids in pool.map(send, senders) for uid in uids]
    for project in senders:
        project.command("list")  # what had to wait goes with any command
    assert sorted(found["uid"] for found in known(there)) == sorted(made)
    sound(there)


def _alone(project: Project) -> dict[str, str]:
    """The variables without the server's."""
    ours = ("CLEW_SERVER", "CLEW_TOKEN")
    return {name: value for name, value in project.environment.items() if name not in ours}


def _uids(project: Project) -> list[str]:
    found = json.loads(project.command("list", "--json", env=_alone(project)).stdout)
    return [one["uid"] for one in found]


def _taken(server: Server) -> int:
    """Bytes of content that the server has taken in."""
    return _measured(server, "clew_ingest_bytes_total")


def _measured(server: Server, name: str) -> int:
    said = httpx2.get(f"{server.address}/metrics").text
    (line,) = (one for one in said.splitlines() if one.startswith(f"{name} "))
    return int(float(line.split()[1]))
