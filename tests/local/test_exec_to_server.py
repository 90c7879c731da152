"""`clew exec` sends what it records to a server: whole, whatever is killed or unreachable."""

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

import httpx2
import pytest
from tests.driver import CLEW, Project
from tests.local.server import Server, run_server
from tests.local.test_server_ingest import PACKED, execution, known, measured, name_of, sound

from clew.prov.events import to_batch


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
    project.environment |= server.variables
    return project


def sent(execution: dict[str, Any]) -> dict[str, Any]:
    """How the server shows an execution that a client recorded and sent."""
    return {**execution, "made_elsewhere": True}


def test_gc_keeps_content_of_pending_transfers(there: Project, client: httpx2.Client) -> None:
    kept, dropped = b"kept for a transfer", b"of nobody"
    client.put(f"/api/v1/content/{name_of(kept)}", content=kept, params={"for": "it"})
    client.put(f"/api/v1/content/{name_of(dropped)}", content=dropped)
    freed = json.loads(there.command("gc", "--yes", "--json").stdout)
    assert freed["files"] == 1
    asked = {"contents": [name_of(kept), name_of(dropped)]}
    missing = client.post("/api/v1/content/missing", json=asked).json()["contents"]
    assert missing == [name_of(dropped)]
    events = to_batch(execution("ab" * 16, content=name_of(kept)))
    sent = client.post("/api/v1/events", content=events, headers=PACKED, params={"for": "it"})
    assert sent.status_code == 200
    assert there.command("gc", "--yes").stderr == b"nothing to free\n"


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


def test_only_missing_content_is_sent(tmp_path: Path, server: Server, here: Project) -> None:
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


def test_status_and_streams_are_those_of_the_command(there: Project, here: Project) -> None:
    ran = here.command("exec", "--", "sh", "-c", "cat; echo err >&2; exit 7", input=b"typed")
    assert (ran.returncode, ran.stdout) == (7, b"typed")
    assert ran.stderr.startswith(b"err\nclew: e1 failed with status 7")
    assert ran.stderr.endswith(b", sent as e1\n")
    assert known(there)[0]["status"] == 7


def test_unsent_records_wait_for_the_server(there: Project, here: Project) -> None:
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


def plain_exec(here: Project, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Record a command as users do: a forked `clew` waits longer for a server."""
    command = [*CLEW, "exec", "--", *words]
    return subprocess.run(
        command, cwd=here.folder, env=here.environment, capture_output=True, timeout=120
    )


def test_a_server_that_hangs_is_not_waited_for(
    there: Project, here: Project, server: Server
) -> None:
    (here / "in").write_bytes(random.Random(5).randbytes(8 << 20))  # more than a socket takes
    server.process.send_signal(signal.SIGSTOP)
    try:
        ran = plain_exec(here, "sh", "-c", "cat in; exit 3")
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
        ran = plain_exec(here, "true")
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
        ran = plain_exec(here, "sh", "-c", "cat in > out; exit 3")
        assert ran.returncode == 3
        assert b"did not answer in time" in ran.stderr
        assert cut.wait(120)  # the client has closed the connection
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


def test_the_next_command_sends_unsent_records(there: Project, here: Project) -> None:
    good = here.environment["CLEW_SERVER"]
    here.environment["CLEW_SERVER"] = "http://127.0.0.1:1"
    here.command("exec", "--", "true")
    here.environment["CLEW_SERVER"] = good
    assert len(json.loads(here.command("list", "--json").stdout)) == 1
    own = json.loads(here.command("list", "--json", env=_alone(here)).stdout)
    assert known(there) == [sent(one) for one in own]


def test_removed_executions_are_not_sent(there: Project, here: Project) -> None:
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


def test_many_senders_at_the_same_time(tmp_path: Path, there: Project, server: Server) -> None:
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
    return [one["uid"] for one in found[::-1]]


def _taken(server: Server) -> int:
    """Bytes of content that the server has taken in."""
    return measured(server, "clew_ingest_bytes_total")
