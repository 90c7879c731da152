"""`clew list`."""

from pathlib import Path

import pytest
from tests.driver import EXECUTION, Project, workflow


def test_executions_oldest_first(tmp_path: Path, graph_in_turn: dict[str, str]) -> None:
    clew = workflow(tmp_path, **graph_in_turn)
    clew.shell("exit 4", status=4)
    found = clew.json("list")
    assert [(e["id"], e["name"], e["state"]) for e in found] == [
        ("e1", "clean", "done"),
        ("e2", None, "done"),
        ("e3", None, "failed"),
    ]
    assert all(execution.keys() >= EXECUTION for execution in found)
    rows = [line.split("\t") for line in clew("list").stdout.splitlines()]
    assert rows[0] == ["id", "name", "state", "started", "took", "command"]
    assert [row[:3] for row in rows[1:]] == [
        ["e1", "clean", "done"],
        ["e2", "", "done"],
        ["e3", "", "failed 4"],
    ]
    assert rows[3][5] == "sh -c 'exit 4'"


def test_an_empty_project_shows_the_first_command(
    tmp_path: Path, graph_in_turn: dict[str, str]
) -> None:
    clew = Project(tmp_path, **graph_in_turn)
    ran = clew("list")
    assert ran.stdout == ""
    assert "clew exec -- COMMAND" in ran.stderr
    assert clew.json("list") == []


@pytest.mark.parametrize("incomplete", ["e", "cl"])
def test_the_shell_completes_ids_and_names(
    tmp_path: Path, graph_in_turn: dict[str, str], incomplete: str
) -> None:
    clew = workflow(tmp_path, **graph_in_turn)
    asked = {
        "_CLEW_COMPLETE": "bash_complete",
        "COMP_WORDS": f"clew show {incomplete}",
        "COMP_CWORD": "2",
    }
    told = clew(env={**clew.environment, **asked}).stdout
    assert {line.split(",")[1] for line in told.splitlines()} == (
        {"e1", "e2"} if incomplete == "e" else {"clean"}
    )
