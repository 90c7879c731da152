"""`clew show`."""

from __future__ import annotations

import pytest
from tests.unit.cli.driving import EXECUTION, Clew, workflow


@pytest.fixture(scope="module")
def clew(tmp_path_factory: pytest.TempPathFactory, graph: dict[str, str]) -> Clew:
    return workflow(tmp_path_factory.mktemp("once"), **graph)


def test_one_execution(clew: Clew) -> None:
    shown = clew.json("show", "clean")
    assert shown.keys() >= EXECUTION | {"tree", "environment", "git", "gaps"}
    commands = [process["command"][0] for process in shown["tree"]]
    assert commands[0] == "sh"
    assert "grep" in commands
    for process in shown["tree"]:
        assert process.keys() >= {
            "id", "parent", "pid", "command", "exe", "cwd", "started", "ended", "status"
        }  # fmt: skip
    text = clew("show", "e1").stdout
    assert text.startswith("e1  clean  done\n")
    assert "grep -v ',$' data/raw.csv  e1.p2" in text


def test_every_file_in_detail(clew: Clew) -> None:
    shown = clew.json("show", "e1", "--detail")
    files = {file["path"]: file for file in shown["files"]}
    raw, made = files[str(clew.folder / "data/raw.csv")], files[str(clew.folder / "data/clean.csv")]
    assert (raw["role"], raw["class"], raw["read"], raw["written"]) == (
        "input",
        "data",
        True,
        False,
    )
    assert (made["role"], made["read"], made["written"]) == ("output", False, True)
    assert raw["size"] == len("P1,1\nP2,\nP3,3\n")
    assert shown["network"] == []
    owned = [file for file in shown["files"] if file["package"]]
    assert any(file["class"] == "system" for file in owned)
    lines = clew("show", "e1", "--detail").stdout.splitlines()
    assert any(line.startswith("input\tdata\tr-") and line.endswith("raw.csv") for line in lines)


@pytest.mark.parametrize("part", ["requirements", "packages", "readme"])
def test_reports(clew: Clew, part: str) -> None:
    text = clew("show", "e1", f"--{part}").stdout
    assert clew.json("show", "e1", f"--{part}")[part].rstrip("\n") == text.rstrip("\n")
    assert ("grep" in text) is (part != "requirements")


def test_an_unknown_execution(clew: Clew) -> None:
    assert clew.error("show", "e9", status=5) == ("not-found", "no execution e9", "clew list")
    assert "clean" in clew.error("show", "claen", status=5)[2]
