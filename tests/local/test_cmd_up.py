"""`clew up`: the address, the second one, its end, and what a killed one leaves."""

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import httpx2
from tests.driver import CLEW, Project
from tests.local.server import Server, run_up
from tests.wait import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
VIEWERS = "/volumes/api/namespaces/local/viewers"
VIEWER = "/pvcviewers/local/project/"


def run(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CLEW, "up", "--no-browser", *words],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def browse(server: Server) -> None:
    """Start the viewer of the volume `project`, and wait for its page."""
    with server.client(cookies={"XSRF-TOKEN": "x"}, headers=csrf(server)) as client:
        client.post(VIEWERS, json={"name": "project"}).raise_for_status()
    wait_for_viewer(server)


def csrf(server: Server) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token}", "X-XSRF-TOKEN": "x"}


def wait_for_viewer(server: Server) -> None:
    with server.apps_client() as client:
        wait_until("the viewer", lambda: client.get(VIEWER).status_code == 200)


def marked(project: Project) -> list[int]:
    """The processes that run for notebooks of the project."""
    uid = project.json("init")["uid"]
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if f"CLEW_WORKLOAD={uid}/".encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def test_it_creates_the_project_and_serves_app_and_workloads(tmp_path: Path) -> None:
    project = Project(tmp_path, init=False)
    with run_up(project) as server:
        assert (project.folder / ".clew" / "config.toml").exists()
        with httpx2.Client() as visitor:
            opened = visitor.get(f"{server.address}/?token={server.token}", follow_redirects=True)
            assert opened.status_code == 200
            assert visitor.get(f"{server.address}/api/v1/backend").json()["kind"] == "local"
        assert httpx2.get(f"{server.address}/api/v1/backend").status_code == 401
        browse(server)
        log = server.log.read_text()
        assert server.token not in log
        assert "GET " not in log, "single requests are not for a person"

        second = run(project, "--json")
        assert second.returncode == 0
        assert json.loads(second.stdout) == {
            "address": server.address,
            "token": server.token,
            "apps": None,
            "running": True,
        }
        assert run(project).stdout == f"{server.address}/?token={server.token}\n"
        project.environment["CLEW_TOKEN"] = "another"
        refused = run(project)
        del project.environment["CLEW_TOKEN"]
        assert refused.returncode == 1
        assert "another" not in refused.stdout
        assert server.address in refused.stderr

        assert server.stop() == 0
    assert marked(project) == []


def test_what_a_killed_server_ran_ends_and_starts_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with run_up(project) as server:
        browse(server)
        before = marked(project)
        assert before
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        wait_until("the end of its children", lambda: not marked(project))
    with run_up(project) as server:
        wait_for_viewer(server)
        assert not set(before) & set(marked(project))
        keeper = min(marked(project))
        os.kill(keeper, signal.SIGSTOP)  # it cannot end what it looks after
        assert server.stop() == 0
    wait_until("the end of everything", lambda: not marked(project))


def test_the_next_one_waits_until_one_that_is_ending_has_ended(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with run_up(project) as server:
        browse(server)
        server.process.send_signal(signal.SIGTERM)
        lock = project.folder / ".clew" / "workloads" / "lock"
        wait_until("the beginning of its end", lambda: not lock.read_text())
        with run_up(project) as following, following.client() as client:
            assert client.get("/api/v1/backend").status_code == 200


def test_ports(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run(project, "--port", str(port))
    assert refused.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in refused.stderr
    assert "clew up --port 0" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_project_of_somebody_else_is_not_served(tmp_path: Path) -> None:
    """Its notebooks would run here."""
    project = Project(tmp_path)
    project.environment["XDG_STATE_HOME"] = str(tmp_path / "other-state")
    refused = run(project, "--port", "0")
    assert refused.returncode == 4
    assert "clew init --trust" in refused.stderr


def test_a_demo_without_a_terminal_says_how_to_open_the_app(tmp_path: Path) -> None:
    project = Project(tmp_path)
    said = subprocess.run(
        [EXAMPLES / "open-app.sh", project.folder], capture_output=True, text=True, check=True
    ).stdout
    assert f"$ cd {project.folder} && clew up" in said
    assert "Nothing is running now" in said
    (token,) = re.findall(r"\?token=(\w+)$", said, re.M)
    with run_up(project) as server, httpx2.Client() as browser:
        answer = browser.get(f"{server.address}/?token={token}")
        assert answer.status_code == 303
        assert "set-cookie" in answer.headers
