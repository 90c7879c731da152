"""Every example of a pipeline runs as a user would run it, on a small cut of its data."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.driver import Project

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(project: Project, example: str, **given: object) -> dict[str, Any]:
    words = [word for name, value in given.items() for word in ("-p", f"{name}={value}")]
    pipeline = EXAMPLES / example / "pipeline.py"
    ran = project.command("pipeline", "run", pipeline, *words, "--json")
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def states(document: dict[str, Any]) -> dict[str, str]:
    return {task["name"]: task["state"] for task in document["tasks"]}


def artifact(document: dict[str, Any], name: str) -> dict[str, Any]:
    """One that a task made, by `task:name`."""
    task, _, output = name.partition(":")
    (found,) = (one for one in document["tasks"] if one["name"] == task)
    (made,) = found["artifacts"][output]
    return dict(made)


def text(document: dict[str, Any], name: str) -> str:
    return Path(artifact(document, name)["uri"]).read_text()


def test_data_passing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    first = run(project, "data-passing", line="Ho", times=3, count=1000)
    assert first["outputs"] == {"Output": 499_500}
    assert text(first, "repeat-line:text") == "Ho 1\nHo 2\nHo 3\n"
    assert text(first, "split-lines:odd") == "Ho 1\nHo 3\n"
    assert text(first, "split-lines:even") == "Ho 2\n"
    assert artifact(first, "write-numbers:numbers")["metadata"] == {"count": 1000}
    said = {
        task["name"]: project.command("pipeline", "logs", task["id"]).stdout.decode()
        for task in first["tasks"]
    }
    assert "\nadded 1000 numbers\n" in said["sum-numbers"]
    assert "\n499500\n" in said["print-value"]
    assert "\nHo 1\nHo 2\nHo 3\n" in said["print-file"]
    assert "\nHo 1\nHo 3\n" in said["print-file-2"]
    assert "\nHo 2\n" in said["print-file-3"]

    second = run(project, "data-passing", line="Ho", times=2, count=1000)
    kept = {name for name, state in states(second).items() if state == "reused"}
    assert kept == {"write-numbers", "sum-numbers", "print-value", "print-file-3"}
    assert text(second, "split-lines:odd") == "Ho 1\n"


def made_trips(count: int) -> bytes:
    words = [sys.executable, EXAMPLES / "taxi" / "make_trips.py", str(count)]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout


def test_taxi(tmp_path: Path) -> None:
    """The model is better than none, a new rate repeats only what it must, a new trip the rest."""
    project = Project(tmp_path)
    (project / "trips.csv").write_bytes(made_trips(400))
    first = run(project, "taxi", iterations=30)
    tables = ("fetch:table", "fetch-2:table")
    counts = [artifact(first, name)["metadata"]["trips"] for name in tables]
    assert (sum(counts), set(states(first).values())) == (400, {"succeeded"})
    scores = artifact(first, "evaluate:scores")["metadata"]
    assert json.loads(text(first, "evaluate:scores")) == scores
    assert scores["trips"] == counts[1]
    tips = [float(tip) for tip in text(first, "true-values:tips").split()]
    mean = sum(tips) / len(tips)
    assert scores["mean absolute error"] < sum(abs(tip - mean) for tip in tips) / len(tips) / 2
    assert first["outputs"] == {"Output": scores["mean absolute error"]}

    second = run(project, "taxi", iterations=30, learning_rate=0.1)
    kept = {name for name, state in states(second).items() if state == "reused"}
    assert kept == {"fetch", "fetch-2", "true-values"}
    traced = json.loads(project.command("trace", "r2/evaluate:scores", "--json").stdout)
    assert str(project / "trips.csv") in {node["label"] for node in traced["nodes"]}

    with (project / "trips.csv").open("a") as file:
        file.write("8,9.5,3,12,4,1362683700,,,,,2.0,,,Cash,,420,8,0\n")
    third = run(project, "taxi", iterations=30, learning_rate=0.1)
    found = states(third)
    assert (found["fetch"], found["fetch-2"]) == ("succeeded", "succeeded")
    assert (found["train"], found["true-values"]) == ("succeeded", "reused")
    assert artifact(third, "fetch:table")["metadata"]["trips"] == counts[0] + 1
