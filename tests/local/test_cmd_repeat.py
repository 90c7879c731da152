"""`clew repeat` and `clew given`: the same command with the same files, and what came of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.driver import CLEW, Project

KEYS = {"execution", "of", "verdict", "differences", "divergence", "ran", "reused", "warnings"}


def repeated(project: Project, *words: str, status: int = 0, **more: Any) -> dict[str, Any]:
    ran = project.command("repeat", *words, "--json", **more)
    assert ran.returncode == status, (ran.stdout, ran.stderr)
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def refused(project: Project, *words: str, status: int, **more: Any) -> dict[str, str]:
    error: dict[str, str] = repeated(project, *words, status=status, **more)["error"]
    assert error["hint"]
    return error


def content(project: Project, version: str) -> bytes:
    ran = project.command("cat", version)
    assert ran.returncode == 0, ran.stderr
    return bytes(ran.stdout)


def test_identical(project: Project) -> None:
    (project / "in").write_text("b\na\n")
    ran = project.sh("sort in > out; echo done; echo careful >&2; mkdir d; ls > d/names; exit 4")
    assert ran.status == 4
    document = repeated(project, ran.id)
    assert document.keys() >= KEYS
    assert (document["of"], document["verdict"], document["differences"]) == (
        ran.id,
        "identical",
        [],
    )
    again = document["execution"]
    assert (again["kind"], again["parent"], again["collection"]) == ("repetition", "e1", "e1")
    assert (again["state"], again["status"], again["command"]) == ("failed", 4, ran.show["command"])
    assert content(project, f"{again['id']}:out") == b"a\nb\n"
    assert content(project, f"{again['id']}:stdout") == b"done\n"


def test_a_command_that_lists_the_root(project: Project) -> None:
    project.shell("ls -la / | wc -l; find / -maxdepth 1 | sort")
    assert project.json("repeat", "e1")["verdict"] == "identical"


def test_an_output_of_terabytes_of_holes_is_not_hashed(project: Project) -> None:
    ran = project.sh("truncate -s 4T holes; echo a > out", timeout=60)
    assert ran.status == 0
    assert [gap["path"].rsplit("/")[-1] for gap in ran.gaps] == ["holes"]
    document = repeated(project, ran.id, status=3, timeout=60)
    assert [one["kind"] for one in document["differences"]] == ["unknown"]
    assert content(project, "e2:out") == b"a\n"


def test_what_was_read_not_what_is_there_now(project: Project) -> None:
    (project / "in").write_text("old\n")
    project.sh("cat in > out; echo more >> in; rm -f gone; touch made")
    (project / "in").write_text("new\n")
    (project / "out").unlink()
    (project / "made").write_text("mine\n")
    document = repeated(project, "e1")
    assert document["verdict"] == "identical"
    assert content(project, "e2:out") == b"old\n"
    assert (project / "in").read_text() == "new\n"
    assert (project / "made").read_text() == "mine\n"
    assert not (project / "out").exists()


def test_output_is_shown_with_the_verdict(project: Project) -> None:
    project.sh("echo one; echo two >&2")
    ran = project.command("repeat", "e1")
    assert (ran.returncode, ran.stdout) == (0, b"one\n")
    assert ran.stderr.splitlines()[0] == b"two"
    assert b"e2 repeats e1: identical" in ran.stderr


def test_a_repetition_can_be_repeated_and_runs_from_anywhere(
    project: Project, tmp_path: Path
) -> None:
    (project / "in").write_text("x")
    project.exec("cat", "in")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    project.environment["CLEW_PROJECT"] = str(project.folder)
    assert repeated(project, "e1", cwd=elsewhere)["verdict"] == "identical"
    document = repeated(project, "e2", cwd=elsewhere)
    assert document["verdict"] == "identical"
    assert (document["execution"]["parent"], document["execution"]["collection"]) == ("e2", "e1")


def test_different(project: Project) -> None:
    project.exec(sys.executable, "-c", "import os; open('out', 'w').write(os.urandom(8).hex())")
    document = repeated(project, "e1", status=3)
    assert document["verdict"] == "different"
    [difference] = document["differences"]
    assert (difference["kind"], difference["path"]) == ("content", str(project / "out"))
    assert difference["a"] != difference["b"]


def test_a_parameter(project: Project) -> None:
    ran = project.exec("sh", "-c", 'echo "$1" > out', "sh", "slow")
    document = repeated(project, ran.id, "--set", "4=fast", status=3)
    again = document["execution"]
    assert (again["kind"], again["parent"]) == ("modification", "e1")
    assert again["command"] == ["sh", "-c", 'echo "$1" > out', "sh", "fast"]
    assert content(project, "e2:out") == b"fast\n"
    listed = json.loads(project.command("list", "--tree", "--json").stdout)
    assert [(one["id"], one["children"][0]["how"]) for one in listed] == [("e1", "parameters")]


def test_a_parameter_by_name_and_a_crash(project: Project) -> None:
    line = 'echo "$2" > out; cat "${4#*=}"; exit "$2"'
    project.write("old", "old")
    project.exec("sh", "-c", line, "sh", "--code", "0", "--from", f"in={project / 'old'}")
    project.write("new", "new")
    ran = project.command("repeat", "e1", "--set", "--code=7", "--set", f"in={project / 'new'}")
    assert (ran.returncode, ran.stdout) == (3, b"new"), ran.stderr
    assert "e2 modifies e1: failed: exit status 0 → 7 (" in ran.stderr.decode()
    assert "error" in repeated(project, "e1", "--set", "other=1", status=2)


def test_after_confirmed_randomness_pinning_is_suggested(project: Project) -> None:
    project.sh("head -c 16 /dev/urandom > out")
    assert b"clew exec --pin random" in project.command("repeat", "e1").stderr


def test_a_file_is_brought_in(project: Project, tmp_path: Path) -> None:
    (project / "old").write_text("old")
    project.exec("cat", "old")
    (project / "sub").mkdir()
    (project / "sub/new").write_text("new")
    far = tmp_path / "far"
    far.write_text("far")
    for value, text in (("sub/new", b"new"), (str(far), b"far")):
        ran = project.command("given", value, "repeat", "e1", "%1")
        assert (ran.returncode, ran.stdout) == (3, text), ran.stderr
    (project / "old").write_text("changed")
    ran = project.command("given", "old", "repeat", "e2", "%1")
    assert ran.stdout == b"old" if ran.returncode == 0 else ran.stdout == b"changed"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("e9",), 5),
        (("e1", "--set", "9=x"), 2),
        (("e1", "--set", "x"), 2),
        (("e1", "--keep", "."), 4),
    ],
)
def test_refusals(project: Project, words: tuple[str, ...], code: int) -> None:
    project.exec("true")
    assert "error" in repeated(project, *words, status=code)
    assert len(json.loads(project.command("list", "--json").stdout)) == 1


def test_without_bubblewrap_nothing_begins(project: Project, tmp_path: Path) -> None:
    project.exec("true")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/unshare").symlink_to("/usr/bin/unshare")
    without = {**project.environment, "PATH": str(tmp_path / "bin")}
    ran = project.command("repeat", "e1", env=without)
    assert (ran.returncode, b"bwrap is missing" in ran.stderr) == (1, True), ran.stderr
    assert not (project / ".clew/cache/roots").exists()
    assert project.exec("true").id == "e2"


@pytest.mark.parametrize(
    "words", [("x", "e1", "%1"), ("x", "repeat", "e1"), ("repeat", "e1", "%1")]
)
def test_given_names_missing_parameters(project: Project, words: tuple[str, ...]) -> None:
    project.exec("echo", "a")
    ran = project.command("given", *words)
    assert ran.returncode == 2, ran.stderr
    assert b"hint:" in ran.stderr


def test_what_it_left_is_kept(project: Project, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    project.sh("mkdir -p d; echo in > d/x; ln -s x d/y; chmod 750 d/x; echo out > ../elsewhere/z")
    repeated(project, "e1", "--keep", "kept")
    kept = project / "kept"
    assert (kept / "d/x").read_text() == "in\n"
    assert (kept / "d/x").stat().st_mode & 0o777 == 0o750
    assert os.readlink(kept / "d/y") == "x"
    assert (kept / f"_outside{tmp_path}/elsewhere/z").read_text() == "out\n"


def test_input_and_redirections(project: Project) -> None:
    (project / "in").write_text("from a file\n")
    with (project / "in").open() as source, (project / "log").open("w") as log:
        words = [*CLEW, "exec", "--", "sh", "-c", "cat; echo end >&2"]
        settings = {"cwd": project.folder, "env": project.environment}
        done = subprocess.run(words, stdin=source, stdout=subprocess.PIPE, stderr=log, **settings)
    assert done.stdout == b"from a file\n"
    assert (project / "log").read_text().startswith("end\n")
    (project / "in").unlink()
    document = repeated(project, "e1")
    assert document["verdict"] == "identical"
    assert content(project, "e2:log") == b"end\n"
    ran = project.exec("tr", "a-z", "A-Z", input=b"from a pipe\n")
    assert ran.out == b"FROM A PIPE\n"
    ran = project.command("repeat", ran.id)
    assert (ran.returncode, ran.stdout) == (0, b"FROM A PIPE\n"), ran.stderr


def test_output_that_is_appended(project: Project) -> None:
    (project / "log").write_text("before\n")
    settings = {"cwd": project.folder, "env": project.environment}
    with (project / "log").open("a") as log:
        subprocess.run(
            [*CLEW, "exec", "--", "echo", "mine"], stdout=log, stderr=subprocess.PIPE, **settings
        )
    assert repeated(project, "e1")["verdict"] == "identical"
    assert content(project, "e2:log") == b"before\nmine\n"


def test_a_secret_is_asked_for_again(project: Project) -> None:
    project.environment["API_TOKEN"] = "s3cret-value"
    project.sh('printf %s "$API_TOKEN" | wc -c; echo "$1"', env=project.environment)
    ran = project.exec("echo", "s3cret-value")
    assert "s3cret" not in json.dumps(ran.show)
    without = {n: v for n, v in project.environment.items() if n != "API_TOKEN"}
    error = refused(project, "e1", status=2, env=without)
    assert "API_TOKEN" in error["message"]
    assert repeated(project, "e1")["verdict"] == "identical"
    document = repeated(project, "e2")
    assert document["verdict"] == "identical"
    assert "s3cret" not in json.dumps(document)


def test_bytes_that_were_not_kept(project: Project) -> None:
    (project / "big").write_text("x")
    project.exec("cat", "big", options=("--exclude", "*/big"))
    error = refused(project, "e1", status=5)
    assert "big" in error["message"]
    assert len(json.loads(project.command("list", "--json").stdout)) == 1


def test_a_broken_execution_cannot_be_repeated(project: Project) -> None:
    running = project.start_exec("sh", "-c", "echo up; sleep 60")
    assert running.stdout is not None
    assert running.stdout.readline() == b"up\n"
    running.kill()
    running.communicate()
    assert "incomplete" in refused(project, "e1", status=1)["message"]
