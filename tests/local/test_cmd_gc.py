"""`clew gc`."""

from pathlib import Path

import pytest
from tests.driver import Project, workflow


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    return workflow(tmp_path, **graph_in_turn)


def test_gc_removes_unreferenced_content_only(clew: Project) -> None:
    import random

    clew.write("noise", "".join(random.Random(1).choices("0123456789abcdef", k=300_000)))
    clew.shell("cat noise > copy")
    assert clew.json("gc", "--dry-run")["files"] == 0
    clew("rm", "e3", "--yes")
    planned = clew.json("gc", "--dry-run")
    assert planned["files"] >= 1
    assert planned["bytes"] > 100_000
    freed = clew.json("gc", "--yes")
    assert freed["dry_run"] is False
    assert freed["files"] == planned["files"]
    assert clew.json("gc", "--yes")["files"] == 0
    assert clew.json("fsck")["ok"]
    assert clew("cat", "e1:data/raw.csv").stdout.startswith("P1")


def test_without_a_terminal_it_takes_yes(clew: Project) -> None:
    clew("rm", "e1", "e2", "--yes")
    assert clew.error("gc", status=4)[0] == "not-allowed"
    clew("gc", "--yes")
    assert "nothing to free" in clew("gc").stderr


def test_beside_a_running_execution(clew: Project) -> None:
    clew.write("late", "what only the running one has")
    running = clew.start("exec", "--", "sh", "-c", "cat late > kept; echo ready; read line")
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    clew("gc", "--yes")
    running.communicate("go\n")
    assert running.returncode == 0
    assert clew("cat", "e3:late").stdout == "what only the running one has"
    assert clew.json("fsck")["ok"]
