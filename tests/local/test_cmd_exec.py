"""`clew exec`: the command is left alone, the summary stands on stderr, the status is its own."""

import json
import random
import re
import signal
from pathlib import Path

import pytest
from tests.driver import EXECUTION, Project

SUMMARY = re.compile(
    r"clew: e1(?: \(\w+\))? done in \d+\.\d s, \d+ process(?:es)?, \d+ inputs?, \d+ outputs?,"
    r" [\d.]+ \w?B \([\d.]+ \w?B new\)\n"
)


@pytest.fixture
def clew(tmp_path: Path, graph: dict[str, str]) -> Project:
    return Project(tmp_path, **graph)


def test_one_line_sums_up(clew: Project) -> None:
    ran = clew("exec", "--name", "hello", "--", "sh", "-c", "echo out; cat >&2", stdin="err\n")
    assert ran.stdout == "out\n"
    said, _, summary = ran.stderr.partition("\n")
    assert said == "err"
    assert SUMMARY.fullmatch(summary)
    assert "(hello)" in summary


def test_json_is_the_last_line_of_stderr(clew: Project) -> None:
    ran = clew("exec", "--json", "--", "sh", "-c", "echo out; echo err >&2")
    assert ran.stdout == "out\n"
    execution = json.loads(ran.stderr.splitlines()[-1])
    assert execution.keys() >= EXECUTION
    assert (execution["id"], execution["state"], execution["status"]) == ("e1", "done", 0)
    assert execution["command"] == ["sh", "-c", "echo out; echo err >&2"]


def test_the_status_is_the_command_s_own(clew: Project) -> None:
    failed = clew.shell("exit 3", status=3)
    assert (failed["state"], failed["status"]) == ("failed", 3)
    killed = clew.shell("kill -TERM $$", status=128 + signal.SIGTERM)
    assert (killed["state"], killed["signal"]) == ("failed", signal.SIGTERM)
    assert "failed with status 3" in clew("exec", "--", "sh", "-c", "exit 3", status=3).stderr


def test_outside_a_project_one_is_made(tmp_path: Path, graph: dict[str, str]) -> None:
    clew = Project(tmp_path, init=False, **graph)
    ran = clew("exec", "--", "true")
    assert ran.stderr.startswith(f"clew: created a project in {clew.folder}\n")
    assert [found["id"] for found in clew.json("list")] == ["e1"]


def test_no_project_is_made_in_the_home_or_root_directory(tmp_path: Path) -> None:
    clew = Project(tmp_path, init=False, HOME=str(tmp_path / "project"))
    ran = clew("exec", "--", "touch", "made", status=125)
    assert f"hint: cd to the directory of your work, or run clew init {clew.folder}" in ran.stderr
    assert list(clew.folder.iterdir()) == []
    if not Path("/.clew").exists():
        assert "clew init /\n" in clew("exec", "--", "true", cwd="/", status=125).stderr
    clew("init")
    clew("exec", "--", "touch", "made")


def test_what_cannot_be_run(clew: Project) -> None:
    for words, status, code in [
        (["no-such-program"], 127, "no-such-command"),
        (["./data"], 126, "not-executable"),
    ]:
        clew.write("data", "not a program")
        ran = clew("exec", "--json", "--", *words, status=status)
        assert json.loads(ran.stderr.splitlines()[-1])["error"]["code"] == code
        assert ran.stdout == ""
    assert clew.shell("true")["id"] == "e1", "what never started has no id"


def test_no_command_at_all(clew: Project) -> None:
    assert "clew exec --help" in clew("exec", status=2).stderr


def test_a_name_may_not_look_like_an_id(clew: Project) -> None:
    ran = clew("exec", "--name", "e7", "--", "true", status=2)
    assert "e7" in ran.stderr


def test_content_may_be_left_out(clew: Project) -> None:
    clew.write("keep.txt", "kept")
    clew.write("big.bin", "left out")
    clew.shell("cat keep.txt big.bin > all.bin", "--exclude", "*.bin")
    assert clew("cat", "e1:keep.txt").stdout == "kept"
    assert clew.error("cat", "e1:big.bin", status=5)[0] == "no-content"
    clew.write("other.txt", "never stored")
    clew.shell("cat other.txt", "--no-content")
    assert clew.error("cat", "e2:other.txt", status=5)[0] == "no-content"


def test_what_is_known_already_is_not_stored_again(clew: Project) -> None:
    clew.write("data", "".join(random.Random(3).choices("0123456789abcdef", k=200_000)))
    first = clew.shell("cat data > copy")
    assert first["new_bytes"] > 50_000
    again = clew.shell("cat data > copy")
    assert again["bytes"] >= first["bytes"] - 200_000
    assert again["new_bytes"] < 5_000
    assert re.search(r", [\d.]+ MB \([\d.]+ k?B new\)\n", clew("exec", "--", "cat", "data").stderr)


def test_the_configuration_leaves_content_out(clew: Project) -> None:
    config = clew.folder / ".clew/config.toml"
    config.write_text(config.read_text().replace("exclude = []", 'exclude = ["*.bin"]'))
    clew.write("big.bin", "left out")
    clew.shell("cat big.bin > copy")
    files = {Path(f["path"]).name: f for f in clew.json("show", "e1", "--detail")["files"]}
    assert files["big.bin"]["digest"] == files["copy"]["digest"]
    assert (files["big.bin"]["stored"], files["copy"]["stored"]) == (False, True)


def test_what_the_kernel_makes_up_is_not_stored(clew: Project) -> None:
    clew.shell("cat /proc/version /sys/kernel/mm/transparent_hugepage/enabled; head -c 1 /dev/zero")
    files = {file["path"]: file for file in clew.json("show", "e1", "--detail")["files"]}
    assert files["/proc/version"]["read"]
    made_up = [file for path, file in files.items() if path.startswith(("/proc", "/sys", "/dev"))]
    assert [(file["stored"], file["digest"]) for file in made_up] == [(False, None)] * len(made_up)


def test_devices_and_pseudo_files_are_no_outputs(clew: Project) -> None:
    code = "open('/proc/self/comm', 'w').write('a'); open('/dev/urandom', 'r+b', 0).write(b'b')"
    run = clew.exec("python3", "-I", "-c", code)
    assert {p for p, f in run.files.items() if f["role"] != "input"} == {"stdout", "stderr"}
    assert run.show["environment"]["devices"] == ["/dev/urandom"]
    assert not [path for path in run.files if path.startswith(("/dev", "/proc/self", "/proc/1"))]
    assert run.show["outputs"] == 0


def test_inside_another_it_joins(clew: Project) -> None:
    import sys

    inner = f"{sys.executable} -m clew exec -- sh -c 'echo x > made'"
    outer = clew.shell(inner)
    assert outer["id"] == "e1"
    assert [found["id"] for found in clew.json("list")] == ["e1"]
    files = {file["path"]: file["role"] for file in clew.json("show", "e1", "--detail")["files"]}
    assert files[str(clew.folder / "made")] == "output"
