"""Every example of a pipeline runs as a user would run it, on a small cut of its data."""

import json
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
