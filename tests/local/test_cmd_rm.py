"""`clew rm`."""

import os
import pty
from pathlib import Path

import pytest
from tests.driver import Project, workflow


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    return workflow(tmp_path, **graph_in_turn)


def ids(clew: Project) -> list[str]:
    return [execution["id"] for execution in clew.json("list")[::-1]]


def test_an_execution_is_forgotten_and_its_id_not_given_again(clew: Project) -> None:
    assert clew.json("rm", "clean", "--yes") == {"removed": ["e1"], "dry_run": False}
    assert ids(clew) == ["e2"]
    assert clew.error("show", "e1", status=5)[0] == "not-found"
    assert clew.shell("true")["id"] == "e3"
    assert clew("cat", "e2:data/clean.csv").stdout == "P1,1\nP3,3\n"


def test_without_a_terminal_it_takes_yes(clew: Project) -> None:
    assert clew.error("rm", "e1", status=4)[0] == "not-allowed"
    assert "grep" in clew("rm", "e1", "--dry-run").stderr
    assert ids(clew) == ["e1", "e2"]


def test_what_was_shown_is_removed(clew: Project) -> None:
    """Not what is the latest when the user confirms."""
    ours, theirs = pty.openpty()
    process = clew.start("rm", "latest", stdin=theirs, stderr=theirs, text=False)
    os.close(theirs)
    prompt = b""
    while b"[y/N]" not in prompt:
        prompt += os.read(ours, 1000)
    clew("exec", "--", "true")
    os.write(ours, b"y\n")
    process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0
    assert b"e2 " in prompt
    assert ids(clew) == ["e1", "e3"]


def test_all_or_none(clew: Project) -> None:
    assert clew.error("rm", "e1", "e9", "--yes", status=5)[0] == "not-found"
    assert ids(clew) == ["e1", "e2"]


def test_a_running_one_is_kept(clew: Project) -> None:
    running = clew.start("exec", "--", "sh", "-c", "echo ready; read line")
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    assert clew.error("rm", "e3", "--yes", status=1)[0] == "busy"
    assert clew.json("list")[::-1][2]["state"] == "running"
    running.communicate("go\n")
    clew("rm", "e3", "--yes")
