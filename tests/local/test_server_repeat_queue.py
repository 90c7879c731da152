"""Repeats that a server was asked for: performed once, whoever is killed, and seen as they go."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.wait import wait_until

from clew.documents.executions.repeats import RepeatRequest
from clew.pipelines.runs.lease_watcher import LeaseWatcher
from clew.server.catalogue import repeat_requests

FINAL = ("done", "failed", "canceled")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]) -> Project:
    project = Project(tmp_path_factory.mktemp("repeats"), **graph_in_turn)
    project.write("json.py", "open('imported', 'w').close()\n")
    project.write("raw.txt", "3\n1\n2\n")
    project.shell("sort raw.txt > sorted.txt", "--name", "sort")
    project.shell("echo begin; date +%N > now.txt; echo end >&2", "--name", "clock")
    project.shell('echo started; if [ -n "$0" ]; then sleep 0; fi', "--name", "slow")
    with_secret = {**project.environment, "DOOR_PASSWORD": "hunter2-of-whoever-asks"}
    words = ("exec", "--name", "door", "--", "sh", "-c", "echo ${#DOOR_PASSWORD}")
    project(*words, env=with_secret)
    return project


@pytest.fixture(scope="module")
def server(project: Project) -> Iterator[Server]:
    with run_server(project) as running:
        yield running


def ask(server: Server, target: str, *, status: int = 202, **options: Any) -> Any:
    with server.client() as client:
        answer = client.post(f"/api/v1/{target}/repeats", json=options)
    assert answer.status_code == status, answer.text
    return answer.json()


def get(server: Server, request: str) -> Any:
    with server.client() as client:
        return client.get(f"/api/v1/repeats/{request}").json()


def finished(server: Server, request: str) -> Any:
    wait_until("the end of the repeat", lambda: get(server, request)["state"] in FINAL)
    return get(server, request)


def slow(server: Server, seconds: str) -> Any:
    """A repeat that prints a line, and then takes so long."""
    line = f"echo started; sleep {seconds}; echo over"
    request = ask(server, "executions/slow", parameters={"2": line})
    wait_until("its output", lambda: "started" in get(server, request["id"])["output"])
    return request


def is_sleeping(seconds: str) -> bool:
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return f"sleep {seconds}" in found.stdout.splitlines()


def repeats_of(project: Project, uid: str) -> list[str]:
    return [one["uid"] for one in project.json("list") if one["uid"] == uid]


def test_an_identical_repeat(project: Project, server: Server) -> None:
    asked = ask(server, "executions/sort")
    done = finished(server, asked["id"])
    assert (done["state"], done["verdict"], done["error"]) == ("done", "identical", None)
    assert done["target"] == "e1"
    assert done["result"]["execution"]["uid"] == asked["id"], "its uid was chosen beforehand"
    assert done["result"]["execution"]["kind"] == "repetition"
    with server.client() as client:
        listed = client.get("/api/v1/repeats", params={"target": done["target_uid"]}).json()
    assert [one["id"] for one in listed["repeats"]] == [asked["id"]]


def test_a_different_one_says_why(server: Server) -> None:
    done = finished(server, ask(server, "executions/clock")["id"])
    assert done["verdict"] == "different"
    assert [one["path"].rpartition("/")[2] for one in done["result"]["differences"]] == ["now.txt"]
    causes = done["result"]["divergence"]["causes"]
    assert {"cause": "clock", "confidence": "confirmed"}.items() <= causes[0].items()
    assert "begin\n" in done["output"] and "end\n" in done["output"]


def test_other_parameters_make_a_modification(project: Project, server: Server) -> None:
    done = finished(server, ask(server, "executions/slow", parameters={"2": "echo other"})["id"])
    assert done["result"]["execution"]["kind"] == "modification"
    assert done["options"]["parameters"] == {"2": "echo other"}
    assert "other\n" in done["output"]
    refused = ask(server, "executions/slow", parameters={"lr": "1"}, status=400)
    assert "has no parameter lr" in refused["title"]
    ask(server, "executions/slow", parameters={"7": "1"}, status=400)
    large = {str(position): "x" * 90_000 for position in range(3)}
    refused = ask(server, "executions/slow", parameters=large, status=400)
    assert "the parameters have more than" in refused["title"]
    ask(server, "executions/e999", status=404)


def test_the_server_imports_nothing_from_the_project(project: Project, server: Server) -> None:
    done = finished(server, ask(server, "executions/sort")["id"])
    assert done["verdict"] == "identical"
    assert not (project.folder / "imported").exists()


def test_no_secret_reaches_a_repeat(server: Server) -> None:
    done = finished(server, ask(server, "executions/door")["id"])
    assert done["state"] == "failed"
    assert "DOOR_PASSWORD" in done["error"]


def test_a_record_made_elsewhere_gets_no_network(
    server: Server, project: Project, tmp_path: Path
) -> None:
    other = Project(tmp_path)
    other.shell("echo there")
    other("bundle", "create", "e1", "-o", str(tmp_path / "one.clew.zip"))
    pulled = project.json("pull", str(tmp_path / "one.clew.zip"))
    (uid,) = [one["uid"] for one in project.json("list") if one["made_elsewhere"]]
    assert pulled
    for option in ("network", "gpu"):
        refused = ask(server, f"executions/{uid}", status=403, **{option: True})
        assert refused["code"] == "not-allowed"
    assert finished(server, ask(server, f"executions/{uid}")["id"])["verdict"] == "identical"


def test_a_repeat_is_canceled(project: Project, server: Server) -> None:
    request = slow(server, "621")
    assert (
        ask(server, "executions/slow", parameters=request["options"]["parameters"])["id"]
        == (request["id"])
    ), "the same request again"
    with server.client() as client:
        assert client.post(f"/api/v1/repeats/{request['id']}/cancel").status_code == 202
    done = finished(server, request["id"])
    assert done["state"] == "canceled"
    assert "started\n" in done["output"]
    wait_until("the end of the command", lambda: not is_sleeping("621"))
    wait_until("no record of it", lambda: not repeats_of(project, request["id"]))


def test_the_next_server_goes_on_after_a_stop(project: Project, tmp_path: Path) -> None:
    """It begins again what was interrupted: the sandbox of an interrupted repeat is gone."""
    gate = "622"
    with run_server(project) as first:
        request = slow(first, gate)
    assert not is_sleeping(gate)
    with run_server(project) as second:
        wait_until("it runs again", lambda: is_sleeping(gate))
        assert get(second, request["id"])["state"] == "running"
        with second.client() as client:
            client.post(f"/api/v1/repeats/{request['id']}/cancel")
        assert finished(second, request["id"])["state"] == "canceled"


def test_a_killed_server_takes_its_repeat_with_it(project: Project) -> None:
    with run_server(project) as first:
        request = slow(first, "623")
        first.process.send_signal(signal.SIGKILL)
        wait_until("the end of the command", lambda: not is_sleeping("623"))
    with project.opened() as opened:
        claimed = repeat_requests.claim_next(
            opened.graph,
            "next",
            now=time.time_ns() + 60 * 10**9,
            lease=0,
            leases=LeaseWatcher(0),
            is_alive=opened.is_alive,
        )
        assert claimed is not None and claimed[0].id == request["id"]
        repeat_requests.finish_repeat(
            opened.graph, request["id"], "next", state="canceled", output=""
        )


def test_what_is_recorded_is_not_repeated_again(project: Project, server: Server) -> None:
    """A server was killed after the record was complete, and before it stored the verdict."""
    first = finished(server, ask(server, "executions/sort")["id"])
    _rewind(project, first["id"])
    wait_until("it is done again", lambda: get(server, first["id"])["state"] == "done")
    again = get(server, first["id"])
    assert again["result"]["execution"] == first["result"]["execution"]
    assert again["verdict"] == "identical"
    assert repeats_of(project, first["id"]) == [first["id"]]


def _rewind(project: Project, request: str) -> None:
    """Make it as if its server had died just before the end."""
    with project.opened() as opened:
        opened.graph.connection.rows(
            "UPDATE repeat_request SET state = 'running', verdict = NULL, result = NULL,"
            " holder = 'gone', lease = 0, tries = 1 WHERE id = ?",
            (request,),
        )


def test_two_servers_share_the_queue(project: Project, server: Server) -> None:
    with run_server(project) as other:
        asked = [
            ask((server, other)[n % 2], "executions/slow", parameters={"2": f"echo number {n}"})
            for n in range(4)
        ]
        ends = [finished(other, one["id"]) for one in asked]
    assert [one["state"] for one in ends] == ["done"] * 4
    made = [one["uid"] for one in project.json("list")]
    assert [made.count(one["id"]) for one in asked] == [1] * 4


def test_documents_have_their_types(server: Server) -> None:
    with server.client() as client:
        (newest, *_) = client.get("/api/v1/repeats", params={"limit": 1}).json()["repeats"]
    import msgspec

    read = msgspec.json.decode(json.dumps(get(server, newest["id"])), type=RepeatRequest)
    assert read.id == newest["id"]
    assert os.path.basename(read.target) == read.target
