"""`clew diff`: only what differs, in every respect, for people and for programs."""

import gzip
import json
import sys
from typing import Any

from tests.driver import Project

KEYS = {
    *("a", "b", "verdict", "command", "environment", "packages", "hardware"),
    *("processes", "inputs", "outputs", "divergence"),
}


def diff(project: Project, a: str, b: str, *, status: int = 3) -> dict[str, Any]:
    ran = project.command("diff", a, b, "--json")
    assert ran.returncode == status, (ran.stdout, ran.stderr)
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def test_the_same_command_twice(project: Project) -> None:
    for _ in range(2):
        project.sh("echo same > out; echo same; rm -f gone")
        (project / "out").unlink()
    document = diff(project, "e1", "e2", status=0)
    assert document.keys() == KEYS
    assert document["verdict"] == "identical"
    empty = {key: document[key] for key in KEYS - {"a", "b", "verdict"}}
    assert not any(empty.values()), empty
    ran = project.command("diff", "e1", "e2")
    assert (ran.returncode, ran.stdout) == (0, b"e1 and e2 do not differ\n")


def test_an_execution_and_itself(project: Project) -> None:
    project.sh("date +%N; date +%N > out")
    assert diff(project, "e1", "e1", status=0)["verdict"] == "identical"


def test_every_part(project: Project) -> None:
    (project / "raw").write_text("one\ntwo\n")
    first = project.exec(
        *("sh", "-c", "sort raw > out; echo 1; date > /dev/null"),
        options=["--name", "before"],
        env={**project.environment, "RATE": "1", "GONE": "x"},
    )
    (project / "raw").write_text("one\nthree\n")
    project.exec(
        *("sh", "-c", "sort -r raw > out; echo 2; touch made; exit 3"),
        env={**project.environment, "RATE": "2"},
    )
    document = diff(project, "before", "e2")
    assert (document["a"], document["b"], document["verdict"]) == (first.id, "e2", "different")
    assert document["command"]["a"][2].startswith("sort raw")
    assert document["command"]["b"][2].startswith("sort -r raw")
    assert document["environment"]["variables"] == {
        "RATE": {"a": "1", "b": "2"},
        "GONE": {"a": "x", "b": None},
    }
    kinds = {one["kind"]: one for one in document["processes"]}
    assert kinds["missing"]["command"] == ["date"]
    assert kinds["extra"]["command"] == ["touch", "made"]
    changed = [one["changes"] for one in document["processes"] if one["kind"] == "changed"]
    assert {"command": {"a": ["sort", "raw"], "b": ["sort", "-r", "raw"]}} in changed
    raw = next(one for one in document["inputs"] if one["path"] == str(project / "raw"))
    assert (raw["kind"], raw["lines"][2:]) == (
        "content",
        ["@@ -1,2 +1,2 @@", " one", "-two", "+three"],
    )
    outputs = {one["path"].rpartition("/")[2]: one for one in document["outputs"]}
    assert outputs["stdout"]["lines"][2:] == ["@@ -1 +1 @@", "-1", "+2"]
    assert outputs["out"]["kind"] == "content"
    assert outputs["made"]["kind"] == "extra"
    assert (outputs["exit status"]["a"], outputs["exit status"]["b"]) == (0, 3)
    assert document["divergence"]["causes"][0]["cause"] == "argument"

    ran = project.command("diff", "before", "e2")
    assert ran.returncode == 3
    text = ran.stdout.decode()
    for line in (
        "e1 → e2  outputs different",
        "Command",
        "  - sh -c 'sort raw > out; echo 1; date > /dev/null'",
        "  - RATE: 1",
        "  + RATE: 2",
        "  + e2.p3  touch made",
        f"  content     {project / 'raw'}",
        "      +three",
        "  status      exit status 0 → 3",
        "First to diverge",
    ):
        assert line in text.splitlines(), (line, text)


def test_unrelated_executions(project: Project) -> None:
    project.sh("echo 1 > one")
    project.exec(sys.executable, "-c", "open('two', 'w').write('2')")
    document = diff(project, "e1", "e2")
    assert {one["kind"] for one in document["outputs"]} == {"missing", "extra"}
    assert document["divergence"]["causes"][0]["cause"] == "argument"


def test_equivalent_outputs_differ_all_the_same(project: Project) -> None:
    for stamp in (1, 2):
        (project / "made.gz").write_bytes(gzip.compress(b"x", mtime=stamp))
        project.sh("cat made.gz > out.gz")
    document = diff(project, "e1", "e2")
    (out,) = document["outputs"]
    assert (document["verdict"], out["kind"], out["rule"]) == ("equivalent", "equivalent", "gzip")
    assert document["divergence"] is None
    ran = project.command("diff", "e1", "e2")
    assert b"by the rule gzip" in ran.stdout


def test_rules_of_the_project(project: Project) -> None:
    config = project / ".clew" / "config.toml"
    config.write_text(
        config.read_text()
        + "\n[[compare.rules]]\nname = 'run'\npaths = ['*/report']\nignore = 'run \\d+'\n"
    )
    for number in (1, 2):
        project.sh(f"echo run {number} > report")
    outputs = diff(project, "e1", "e2")["outputs"]
    assert [one.get("rule") for one in outputs] == ["run"]
    ran = project.command("diff", "--rules", "--json")
    names = [rule["name"] for rule in json.loads(ran.stdout)]
    assert (ran.returncode, names[0]) == (0, "run")
    assert {"zip", "tar", "gzip", "pyc", "times", "durations"} <= set(names)
    shown = project.command("diff", "--rules").stdout.decode().splitlines()
    assert shown[:2] == ["name\tpaths\twhat is ignored", "run\t*/report\tWhat matches run \\d+"]


def test_bad_rules_are_named(project: Project) -> None:
    project.sh("echo 1 > out")
    config = project / ".clew" / "config.toml"
    good = config.read_text()
    for rule, said in (
        ("name = 'x'\npaths = ['*']\nignore = '('", "the rule x has a pattern that cannot be read"),
        ("name = 'x'\nignore = 'y'", "a rule of [[compare.rules]] lacks paths"),
        ("name = 'x'\npaths = '*'\nignore = 'y'", "lacks paths as a list"),
    ):
        config.write_text(f"{good}\n[[compare.rules]]\n{rule}\n")
        ran = project.command("diff", "e1", "e1", "--json")
        error = json.loads(ran.stdout)["error"]
        assert ran.returncode == 1
        assert said in error["message"]
        assert error["hint"]


def test_what_is_not_there(project: Project) -> None:
    project.sh("true")
    assert project.command("diff", "e1", "e9").returncode == 5
    assert project.command("diff", "e1").returncode == 2
    assert project.command("diff", "--rules", "e1").returncode == 2
