"""`clew exec --pin`: what was pinned is in the record, and a repeat finds it again."""

import json
import sys
import time
from typing import Any

import pytest
from tests.driver import CLEW, Project

import clew
from clew.errors import UsageError

DRAWS = """
import datetime, random, uuid
with open("weights", "w") as file:
    print(datetime.datetime.now(), random.random(), uuid.uuid4(), set("abcdef"), file=file)
"""


def pinned(document: dict[str, Any]) -> dict[str, Any]:
    facet: dict[str, Any] = document["environment"].get("pinned", {})
    return facet


def test_what_is_pinned_is_recorded(project: Project) -> None:
    before = time.time_ns()
    both = pinned(project.exec("true", options=["--pin", "clock,random"]).show)
    assert before <= both["clock"] <= time.time_ns()
    assert len(bytes.fromhex(both["random"])) == 16
    assert both.keys() == {"clock", "random"}
    assert pinned(project.exec("true", options=["--pin", "clock"]).show).keys() == {"clock"}
    assert pinned(project.exec("true").show) == {}


def test_the_clock_begins_when_the_execution_did(project: Project) -> None:
    ran = project.exec("date", "+%s.%N", options=["--pin", "clock"])
    assert int(ran.out.replace(b".", b"")) == pinned(ran.show)["clock"] + 1000


def test_two_executions_draw_different_numbers(project: Project) -> None:
    one, other = (
        project.exec("shuf", "-i", "1-1000000000", "-n", "2", options=["--pin", "random"])
        for _ in range(2)
    )
    assert one.out != other.out


def repeated(project: Project, what: str) -> dict[str, Any]:
    ran = project.command("repeat", what, "--json")
    document: dict[str, Any] = json.loads(ran.stdout)
    assert "error" not in document, document
    assert ran.returncode == (0 if document["verdict"] == "identical" else 3)
    return document


def test_a_repeat_of_what_was_pinned_is_identical(project: Project) -> None:
    (project / "draws.py").write_text(DRAWS)
    line = (
        f"'{sys.executable}' draws.py; date +%N; head -c 8 /dev/urandom | xxd; shuf -e a b c d e f"
    )
    again = repeated(project, project.sh(line, options=["--pin", "clock,random"]).id)
    assert again["verdict"] == "identical"
    twice = repeated(project, again["execution"]["id"])
    assert twice["verdict"] == "identical"


def test_one_pin_leaves_the_other_free(project: Project) -> None:
    (project / "draws.py").write_text(DRAWS)
    ran = project.exec(sys.executable, "draws.py", options=["--pin", "random"])
    assert repeated(project, ran.id)["verdict"] != "identical"


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (("--pin", "clock"), "--pin has no effect"),
        (
            ("--name", "inner", "--no-content", "--exclude", "*.log"),
            "--name, --no-content, --exclude have no effect",
        ),
    ],
)
def test_options_that_are_ignored_inside_another_execution(
    project: Project, options: tuple[str, ...], warning: str
) -> None:
    ran = project.exec(*CLEW, "exec", *options, "--", "true")
    assert ran.status == 0
    assert f"clew: warning: {warning} inside another execution".encode() in ran.err


def test_what_cannot_be_pinned_is_named(project: Project) -> None:
    ran = project.command("exec", "--pin", "clock,moon", "--", "touch", "here")
    assert ran.returncode == 2
    assert b"'moon'" in ran.stderr
    assert not (project / "here").exists()


def test_from_python(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(project.folder)
    with clew.open() as opened:
        ran = opened.exec(["true"], pin=["random"])
        assert pinned(opened.show(ran.id).as_json()).keys() == {"random"}
        with pytest.raises(UsageError):
            opened.exec(["true"], pin=["moon"])
