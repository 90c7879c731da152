"""`clew list`."""

import json
import os
from pathlib import Path

import click
import msgspec
import pytest
from tests.driver import EXECUTION, Project, workflow
from tests.unit.prov.execution_builder import ExecutionBuilder

from clew.cli.commands.list import build_tree
from clew.documents.executions.execution_list import Execution
from clew.documents.ids import ExecutionId, Uid


def test_executions_newest_first(tmp_path: Path, graph_in_turn: dict[str, str]) -> None:
    clew = workflow(tmp_path, **graph_in_turn)
    clew.shell("exit 4", status=4)
    found = clew.json("list")
    assert [(e["id"], e["name"], e["state"]) for e in found] == [
        ("e3", None, "failed"),
        ("e2", None, "done"),
        ("e1", "clean", "done"),
    ]
    assert all(execution.keys() >= EXECUTION for execution in found)
    rows = [line.split("\t") for line in clew("list").stdout.splitlines()]
    assert rows[0] == ["id", "name", "state", "started", "took", "tags", "command"]
    assert [row[:3] for row in rows[1:]] == [
        ["e3", "", "failed 4"],
        ["e2", "", "done"],
        ["e1", "clean", "done"],
    ]
    assert rows[1][6] == "sh -c 'exit 4'"
    assert clew.json("list", "--limit", "1") == found[:1]
    fields = json.loads(clew("list", "--json=id,state", "exit").stdout)
    assert fields == [{"id": "e3", "state": "failed"}]
    assert clew.json("list", "state:done", "name:CLE") == found[2:]
    assert clew.json("list", "--since", "1h", "exit") == found[:1]
    assert clew.json("list", "--since", found[1]["started"]) == found[:2]
    assert clew("list", "--limit", "2").stderr == "1 older execution not shown: use --limit N\n"
    assert clew("list", "no such text").stderr == "no execution matches; clew list shows all\n"
    assert clew.error("list", "--since", "noon", status=2)[0] == "usage"
    assert "state:failed" in clew.error("list", "state:fialed", status=2)[2]


def test_the_tree_shows_what_differs(tmp_path: Path) -> None:
    clew = Project(tmp_path)
    with clew.opened() as project:
        graph = project.graph
        words = ("train", "--rate", "0.1", "in.csv")
        graph.fold(ExecutionBuilder("a", command=words).end().events)
        changed = ("train", "--rate", "0.3", "other.csv")
        for uid, command, kind in (
            ("b", changed, "modification"),
            ("c", words, "repetition"),
            ("d", words, "modification"),
            ("e", (*words, "--fast"), "modification"),
        ):
            derived = {"parent": "a" * 32, "facets": {"kind": kind}}
            graph.fold(ExecutionBuilder(uid, command=command, **derived).end().events)
    (root,) = clew.json("list", "--tree")
    assert [node["how"] for node in root["children"]] == [
        "parameters", "repetition", "commit", "parameters",
    ]  # fmt: skip
    assert root["children"][0]["changes"] == [
        {"name": "--rate", "a": "0.1", "b": "0.3"},
        {"name": "word 3", "a": "in.csv", "b": "other.csv"},
    ]
    rows = [line.split("\t") for line in clew("list", "--tree").stdout.splitlines()]
    assert [(row[0], row[6]) for row in rows[1:]] == [
        ("e1", ""),
        ("├─ e2", "--rate 0.1 → 0.3, word 3 in.csv → other.csv"),
        ("├─ e3", "repetition"),
        ("├─ e4", "commit"),
        ("└─ e5", "with --fast"),
    ]


def test_a_terminal_shows_the_newest(tmp_path: Path) -> None:
    clew = Project(tmp_path)
    with clew.opened() as project:
        for number in range(25):
            project.graph.fold(ExecutionBuilder(f"{number:032x}").end().events)
    ours, theirs = os.openpty()
    shown = clew.start("list", "--no-pager", stdout=theirs)
    os.close(theirs)
    _, said = shown.communicate()
    lines = os.read(ours, 1 << 16).decode().splitlines()
    os.close(ours)
    assert click.unstyle(lines[0]).split() == ["ID", "STATE", "STARTED", "TOOK", "COMMAND"]
    assert [line.split()[0] for line in lines[1:]] == [f"e{n}" for n in range(25, 5, -1)]
    assert said == "5 older executions not shown: use --limit N\n"


def test_an_empty_project_shows_the_first_command(
    tmp_path: Path, graph_in_turn: dict[str, str]
) -> None:
    clew = Project(tmp_path, **graph_in_turn)
    ran = clew("list")
    assert ran.stdout == ""
    assert "clew exec -- COMMAND" in ran.stderr
    assert clew.json("list") == []


@pytest.mark.parametrize("incomplete", ["e", "cl", "la"])
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
        {"e1", "e2"} if incomplete == "e" else {"clean"} if incomplete == "cl" else {"latest"}
    )


def test_a_tree_is_cut_where_it_is_too_deep_for_json() -> None:
    chain = [
        Execution(id=ExecutionId(f"e{n + 1}"), uid=Uid(f"{n:032x}"), command=[], state="done")
        for n in range(2000)
    ]
    derived = [
        msgspec.structs.replace(one, parent=ExecutionId(f"e{n}")) for n, one in enumerate(chain)
    ]
    roots = build_tree(derived[::-1])
    assert [root.id for root in roots[:2]] == ["e1901", "e1801"]
    assert len(msgspec.to_builtins(roots)) == 20
