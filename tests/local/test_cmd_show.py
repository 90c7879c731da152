"""`clew show`."""

import base64
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.driver import EXECUTION, Project, workflow


@pytest.fixture(scope="module")
def clew(tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]) -> Project:
    return workflow(tmp_path_factory.mktemp("once"), **graph_in_turn)


def test_one_execution(clew: Project) -> None:
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
    assert "\nInputs\n  data/raw.csv       14 B\n" in text
    assert "\nDerived from it\n  e2  data/clean.csv\n" in text


def test_the_summary(clew: Project) -> None:
    clew("note", "e2", "the best so far")
    clew("tag", "e2", "baseline")
    shown = clew.json("show", "e2")
    (note,) = shown["notes"]
    assert (note["key"], note["value"]) == ("note", "the best so far")
    assert shown["tags"] == ["baseline"]
    (read,) = (f for f in shown["own_inputs"]["files"] if f["path"].endswith("/clean.csv"))
    assert (read["class"], read["made_by"]) == ("data", "e1")
    assert str(clew.folder / "model.txt") in [f["path"] for f in shown["own_outputs"]["files"]]
    assert shown["derived_from"]["total"] == 1
    (origin,) = shown["derived_from"]["executions"]
    assert (origin["id"], origin["name"], origin["how"]) == ("e1", "clean", "file")
    assert origin["paths"] == [str(clew.folder / "data/clean.csv")]
    assert shown["derived"] == {"total": 0, "executions": []}
    lines = clew("show", "e2").stdout.splitlines()
    assert "  tags        baseline" in lines
    assert "  note        the best so far" in lines
    assert "  e1  clean  data/clean.csv" in lines
    environment = clew("show", "e2", "--environment").stdout.splitlines()
    assert f"  kernel.release          {os.uname().release}" in environment
    assert "  variables.LC_ALL        C.UTF-8" in environment


def test_files_are_selected(clew: Project) -> None:
    def paths(*words: str) -> list[str]:
        return [line.split("\t")[0] for line in clew("show", "e1", *words).stdout.splitlines()[1:]]

    assert paths("*.csv") == ["data/clean.csv", "data/raw.csv"]
    assert paths("data/*", "--role", "output") == ["data/clean.csv"]
    assert paths("--class", "data", "--role", "input") == ["data/raw.csv", "stdin"]
    assert [f["path"] for f in clew.json("show", "e1", "raw.csv")["files"]] == [
        str(clew.folder / "data/raw.csv")
    ]
    ran = clew("show", "e1", "nothing")
    assert (ran.stdout, ran.stderr) == ("", "no file matches; clew show ID --detail lists all\n")
    assert clew.error("show", "e1", "--readme", "x", status=2)[0] == "usage"


def test_every_file_in_detail(clew: Project) -> None:
    shown = clew.json("show", "e1", "--detail")
    files = {file["path"]: file for file in shown["files"]}
    raw, made = (
        files[str(clew.folder / "data/raw.csv")],
        files[str(clew.folder / "data/clean.csv")],
    )
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
    table = lines[lines.index("path\trole\tclass\taccess\tsize\tdigest\tpackage") + 1 :]
    assert any(line.startswith("data/raw.csv\tinput\tdata\tr-\t14 B\t") for line in table[:3])


def test_what_surrounded_it(clew: Project) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        return subprocess.check_output(["git", *who, *words], cwd=clew.folder, text=True).strip()

    git("init", "-q")
    clew.write("tracked", "1\n")
    git("add", "tracked")
    git("commit", "-qm", "first")
    clew.write("tracked", "2\n")
    run = clew.shell("true")["id"]
    shown = clew.json("show", run)
    commit, branch = git("rev-parse", "HEAD"), git("branch", "--show-current")
    assert shown["git"] == {"commit": commit, "dirty": True, "branch": branch}
    assert shown["agent"] == subprocess.check_output(["id", "-un"], text=True).strip()
    environment = shown["environment"]
    assert environment["kernel"]["release"] == os.uname().release
    assert (
        environment["libc"]
        == subprocess.check_output(["getconf", "GNU_LIBC_VERSION"], text=True).strip()
    )
    assert environment["locale"] == {
        name: value for name, value in clew.environment.items() if name.startswith(("LC_", "LANG"))
    }
    assert environment["variables"]["LC_ALL"] == "C.UTF-8"
    assert environment["cpu"]["model"] in Path("/proc/cpuinfo").read_text()
    assert environment["timezone"]
    text = clew("show", run).stdout
    assert f"{shown['git']['commit']}, with uncommitted changes" in text
    assert f"{shown['processes']} process, {shown['inputs']} inputs" in text
    (clew.folder / ".git").rename(clew.folder.parent / "git")


def test_a_variable_that_is_not_text(clew: Project) -> None:
    clew.environment["RAW"] = os.fsdecode(b"a\xffb")
    try:
        environment = clew.json("show", clew.shell("true")["id"])["environment"]
    finally:
        del clew.environment["RAW"]
    assert environment["variables"]["RAW"] == "a\ufffdb"
    assert base64.b64decode(environment["variables_b64"]["RAW"]) == b"a\xffb"


def test_what_a_python_program_depends_on(clew: Project) -> None:
    """Package, version, manager, and who asked for it: as pip and dpkg say themselves."""
    code = "import click, msgspec, importlib.metadata as m; print(m.version('zstandard'))"
    ran = clew("exec", "--json", "--", sys.executable, "-c", code)
    run = json.loads(ran.stderr.splitlines()[-1])["id"]
    files = clew.json("show", run, "--detail")["files"]
    found = next(file for file in files if "/site-packages/click/" in file["path"])
    assert (found["class"], found["stored"]) == ("package", True)
    installed = importlib.metadata.distribution("click")
    version = installed.version
    assert {name: found["package"][name] for name in ("manager", "name", "version")} == {
        "manager": "pypi", "name": "click", "version": version,
    }  # fmt: skip
    assert found["package"]["requested"] is (installed.read_text("REQUESTED") is not None)
    text = clew("show", run, "--requirements").stdout
    assert f"click=={version}" in text.splitlines()
    assert "msgspec==" in text
    assert "zstandard==" not in text, "only its metadata was read"
    assert "clew" not in text
    system = [file for file in files if file["class"] == "system" and file["package"]]
    if shutil.which("dpkg"):
        (libc,) = (f["package"] for f in system if f["path"].endswith("/libc.so.6"))
        assert (libc["manager"], libc["name"]) == ("deb", "libc6")
        asked = subprocess.check_output(["apt-mark", "showmanual", "libc6"], text=True).split()
        assert libc["requested"] is bool(asked)
        assert f"libc6={libc['version']}" in clew("show", run, "--packages").stdout
    assert all(file["stored"] for file in system)
    assert f"click=={version}" in clew("show", run, "--readme").stdout


@pytest.mark.parametrize("part", ["requirements", "packages", "readme"])
def test_reports(clew: Project, part: str) -> None:
    text = clew("show", "e1", f"--{part}").stdout
    assert clew.json("show", "e1", f"--{part}")[part].rstrip("\n") == text.rstrip("\n")
    assert ("grep" in text) is (part != "requirements")


def test_an_unknown_execution(clew: Project) -> None:
    assert clew.error("show", "e9", status=5) == ("not-found", "no execution e9", "clew list")
    assert "clean" in clew.error("show", "claen", status=5)[2]
