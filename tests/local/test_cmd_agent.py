"""`clew agent audit`: an audit log is folded into a project here, or sent to a server."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project
from tests.local.server import run_server
from tests.unit.witness.kubernetes_audit.audit_log import POD, audit, ended, pod, running

from clew import db


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The life of a Pod, with a version of a ConfigMap."""
    about = {"name": "settings", "namespace": "team", "uid": "u"}
    events = [
        audit("create", "configmaps", {"metadata": about, "data": {"rate": "0.1"}}),
        audit("create", "pods", pod()),
        audit("patch", "pods/status", pod(nodeName="node1", status=running())),
        audit("patch", "pods/status", pod(nodeName="node1", status=ended())),
    ]
    path = tmp_path / "audit.log"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return path


def read(project: Project, log: Path, *words: str, status: int = 0, **settings: str) -> Any:
    environment = project.environment | settings
    words = ("agent", "audit", "--log", str(log), "--once", "--json", *words)
    return json.loads(project(*words, status=status, env=environment).stdout)


def pods(project: Project) -> list[tuple[str, str, int]]:
    """The Pods with their nodes and exit statuses."""
    with db.connect(project / ".clew/graph.db") as graph:
        return graph.rows(
            "SELECT s.uid, s.node, e.status FROM started s JOIN ended e ON e.activity = s.id"
            " WHERE s.kind = 'pod'"
        )


def test_log_is_folded_into_the_project(project: Project, log: Path) -> None:
    first = read(project, log)

    assert (first["lines"], first["gaps"], first["waiting"]) == (4, 0, 0)
    assert first["delivered"] > 8
    assert pods(project) == [(POD, "node1", 0)]
    assert read(project, log)["lines"] == 0, "there is nothing new"
    assert project("fsck").returncode == 0


def test_log_is_sent_to_a_server_when_it_is_there(
    project: Project, log: Path, tmp_path: Path
) -> None:
    state = ("--state", str(tmp_path / "agent"))
    away = {"CLEW_SERVER": "http://127.0.0.1:9", "CLEW_TOKEN": "none"}
    assert read(project, log, *state, status=1, **away)["waiting"] > 0
    with run_server(project) as server:
        with server.client() as client:
            made = client.post("/api/v1/tokens", json={"name": "agent", "scope": "observe"})
        there = {"CLEW_SERVER": server.address, "CLEW_TOKEN": made.json()["token"]}
        sent = read(project, log, *state, **there)

    assert (sent["lines"], sent["waiting"]) == (0, 0)
    assert pods(project) == [(POD, "node1", 0)]
    assert project("fsck").returncode == 0


@pytest.mark.parametrize(
    "words", [(), ("--log", "a", "--listen", "b"), ("--listen", "0.0.0.0:1"), ("--listen", "x")]
)
def test_unclear_source_is_an_error(project: Project, words: tuple[str, ...]) -> None:
    ran = project("agent", "audit", *words, status=2)

    assert "hint: " in ran.stderr or "--" in ran.stderr
