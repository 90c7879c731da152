"""Through a server every command says what it says in the project's folder: each is asked twice."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver import CLEW, Project
from tests.local.server import Server, run_server
from tests.wait import wait_until

import clew
from clew.errors import NotAllowed, NotFound

PIPELINES = {
    "sums.py": """
from kfp import dsl

@dsl.component(install_kfp_package=False)
def add(a: int, b: int) -> int:
    print("adding", a, b)
    return a + b

@dsl.pipeline(name="sums")
def sums(a: int = 1, b: int = 2) -> int:
    one = add(a=a, b=b)
    return add(a=one.output, b=b).output
""",
    "gated.py": """
from kfp import dsl

@dsl.component(install_kfp_package=False)
def wait(gate: str) -> int:
    import os, time
    print("waiting", flush=True)
    open(gate + ".reached", "w").close()
    while not os.path.exists(gate):
        time.sleep(0.01)
    return 1

@dsl.pipeline(name="gated")
def gated(gate: str) -> int:
    return wait(gate=gate).set_caching_options(False).output
""",
}


class Both:
    """A project, in its folder and through its server."""

    def __init__(self, project: Project, server: Server) -> None:
        self.project = project
        self.server = server
        self.through = project.environment | server.variables

    def asked(self, *words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        """Through the server."""
        return self.project.command(*words, **{"env": self.through, **more})

    def json(self, *words: str, **more: Any) -> Any:
        return json.loads(self.asked(*words, "--json", **more).stdout)

    def same(self, *words: str, status: int = 0, **more: Any) -> None:
        """Both ways say the same, on stdout and on stderr, and end with the same status."""
        for options in ((), ("--json",)):
            self._clear()
            plain = self.project.command(*words, *options, **more)
            left = self._made()
            self._clear()
            asked = self.asked(*words, *options, **more)
            assert (asked.returncode, asked.stdout, asked.stderr) == (
                plain.returncode, plain.stdout, plain.stderr,
            )  # fmt: skip
            assert left == self._made()
            assert options or plain.returncode == status, plain.stderr

    def _made(self) -> dict[str, tuple[int, bytes]]:
        """What a command left in the folder `made`: modes and bytes."""
        place = self.project / "made"
        return {
            str(path.relative_to(place)): (
                path.lstat().st_mode, b"" if path.is_dir() else path.read_bytes(),
            )
            for path in sorted(place.rglob("*"))
            if path.name != "ro-crate-metadata.json"  # says when it was written
        }  # fmt: skip

    def _clear(self) -> None:
        shutil.rmtree(self.project / "made", ignore_errors=True)
        (self.project / "made").mkdir()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Three executions: e1 makes clean.csv of raw.csv, e2 model.txt of that, e3 changes both."""
    project = Project(tmp_path_factory.mktemp("served"))
    (project / "raw.csv").write_text("a,1\nb,\nc,3\n")
    project.sh("grep -v ',$' raw.csv > clean.csv", options=("--name", "clean"))
    project.sh("wc -l < clean.csv > model.txt; echo done; echo oh >&2")
    (project / "raw.csv").write_text("a,1\n")
    project.sh("grep -v ',$' raw.csv > clean.csv; exit 4")
    (project / "sub").mkdir()
    (project / "link.txt").symlink_to("model.txt")
    name = os.fsdecode(b"not-\xff-text")
    project.sh(f"echo odd > {name}")
    for name, text in PIPELINES.items():
        (project / name).write_text(text)
    with run_server(project, "--runs", "2") as server:
        yield Both(project, server)


@pytest.mark.parametrize(
    "words",
    [
        "list", "list --tree", "tag e1 best", "list tag:best", "list state:failed --limit 1",
        "list grep --since 2020-01-01 --limit 1", "list --workers",
        "show latest", "trace latest --down", "trace latest.p1",
        "show e1", "show clean", "show e2 --detail", "show e1 --requirements",
        "show e1 --packages", "show e1 --readme",
        "trace model.txt", "trace clean.csv --depth 1", "trace raw.csv --down", "trace e2 --all",
        "trace e1:clean.csv", "trace link.txt", "trace model.txt --dot", "trace e2.p1",
        "cat e1:clean.csv", "cat e1:raw.csv@input", "cat e2:stdout", "cat clean.csv",
        "restore clean.csv --list", "restore link.txt --list",
        "restore e1:clean.csv --dry-run", "restore e1:clean.csv --to made/back.csv",
        "restore e1:clean.csv --to made",
        "note e1", "note model.txt", "source raw.csv https://example.org/raw.csv",
        "diff e1 e3 --rules", "diff --rules",
        "export e1 --format prov-n -o made/prov", "export e1 --format ro-crate -o made/crate",
        "export e1 --format dockerfile -o made/docker", "export e1 --format oci -o made/e1.tar",
        "rm e2 --dry-run", "gc --dry-run", "fsck",
        "pipeline list",
    ],
)  # fmt: skip
def test_a_command_prints_the_same(both: Both, words: str) -> None:
    both.same(*words.split(), status=2 if "e3 --rules" in words else 0)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("diff e1 e3", 3), ("diff e1 e2", 3),
        ("show e77", 5), ("show claen", 5), ("trace nowhere.txt", 5), ("trace e1:nowhere", 5),
        ("cat e1:clean.csv@7", 5), ("cat e1", 2), ("cat blake3:12", 2), ("cat blake3:00000000", 5),
        ("restore nowhere.txt", 5), ("restore nowhere.txt --list", 5),
        ("note e77 a=b", 5), ("diff e1 e77", 5),
        ("export e77", 5), ("export e1 --format ro-crate", 2), ("rm e77", 5), ("rm e2", 4),
        ("repeat e77", 5), ("repeat e1 --keep made/..", 4), ("repeat e1 --set 99=x", 2),
        ("pipeline show r77", 5), ("pipeline logs r77/x", 5), ("pipeline why r77/x", 5),
        ("pipeline cancel r77", 5), ("pipeline resume r77", 5),
        ("pipeline run nowhere.yaml", 5), ("pipeline run sums.py -p x=1", 2),
        ("nonsense", 2), ("show", 2),
    ],
)  # fmt: skip
def test_an_error_is_the_same(both: Both, words: str, status: int) -> None:
    both.same(*words.split(), status=status)


def test_paths_are_relative_to_the_current_directory(both: Both) -> None:
    both.same("trace", "../model.txt", cwd=both.project / "sub")
    both.same("cat", "e1:../clean.csv", cwd=both.project / "sub")
    odd = os.fsdecode(b"not-\xff-text")
    both.same("trace", odd)
    both.same("show", odd, status=5)
    both.same("cat", f"e4:{odd}")
    both.same("restore", odd, "--list")


def test_a_changed_file_is_seen_as_it_is_here(both: Both) -> None:
    place = both.project / "model.txt"
    before = place.read_bytes()
    try:
        place.write_text("changed by hand\n")
        both.same("trace", "model.txt")
        both.same("restore", "e2:model.txt", status=4)  # what is there now is stored nowhere
        asked = both.asked("restore", "e2:model.txt", "--yes")
        assert asked.returncode == 0, asked.stderr
    finally:
        assert place.read_bytes() == before


def test_a_restored_file_has_its_mode_and_times(both: Both) -> None:
    back = both.project / "back.csv"
    both.asked("restore", "e3:clean.csv", "--to", "back.csv")
    there = (both.project / "clean.csv").stat()
    assert (back.stat().st_mode, back.stat().st_mtime_ns) == (there.st_mode, there.st_mtime_ns)
    back.unlink()


def test_notes_are_made_there(both: Both) -> None:
    noted = both.json("note", "e2:model.txt", "verdict=good")["notes"]
    own = json.loads(both.project.command("note", "model.txt", "--json").stdout)["notes"]
    assert noted == own
    assert [note["key"] for note in noted] == ["verdict"]


def test_a_repeat_is_done_there(both: Both) -> None:
    ran = both.asked("repeat", "e2", "--keep", "kept")
    assert (ran.returncode, ran.stdout) == (0, b"done\n")
    repeated = both.json("list")[0]["id"]
    said = f"oh\nclew: {repeated} repeats e2: identical (1 output"
    assert ran.stderr.startswith(said.encode())
    assert (both.project / "kept/model.txt").read_bytes() == b"2\n"
    both.same("show", repeated)
    changed = both.json("repeat", "e2", "--set", "2=echo other")
    assert (changed["verdict"], changed["execution"]["kind"]) == ("different", "modification")
    assert both.asked("repeat", "e2", "--set", "2=echo other").returncode == 3
    assert both.json("given", "echo other", "repeat", "e2", "%2")["verdict"] == "different"


def test_causes_are_confirmed_there(both: Both) -> None:
    both.asked("exec", "--", "sh", "-c", "date +%N > now")
    first = both.json("list")[0]["id"]
    again = both.json("repeat", first)
    differing = both.json("diff", first, again["execution"]["id"], "--confirm")
    causes = {(one["cause"], one["confidence"]) for one in differing["divergence"]["causes"]}
    assert ("clock", "confirmed") in causes


def test_a_project_is_made_here_all_the_same(both: Both, tmp_path: Path) -> None:
    assert both.json("init", cwd=tmp_path)["created"] is True


def test_an_unreachable_server_and_a_wrong_token_differ(both: Both) -> None:
    away = {**both.through, "CLEW_SERVER": "http://127.0.0.1:1"}
    said = both.json("list", env=away)["error"]
    assert (said["code"], both.asked("list", env=away).returncode) == ("unreachable", 1)
    assert "127.0.0.1:1" in said["message"]
    unknown = {**both.through, "CLEW_TOKEN": "not-the-token"}
    said = both.json("list", env=unknown)["error"]
    assert (said["code"], both.asked("list", env=unknown).returncode) == ("not-allowed", 4)
    assert "CLEW_TOKEN" in said["hint"]
    assert "not-the-token" not in json.dumps(said)


def test_the_address_may_be_the_one_that_was_printed(both: Both) -> None:
    printed = {**both.project.environment,
               "CLEW_SERVER": f"{both.server.address}/?token={both.server.token}"}  # fmt: skip
    assert both.asked("list", env=printed).returncode == 0
    away = {**printed, "CLEW_SERVER": f"http://127.0.0.1:1/?token={both.server.token}"}
    assert both.server.token.encode() not in both.asked("list", env=away).stderr


def test_python_asks_there_too(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    with both.project.opened() as own:
        documents = [execution.as_json() for execution in own.executions()]
        text = own.read("e1:clean.csv")
    monkeypatch.chdir(both.project.folder)
    for name in ("CLEW_SERVER", "CLEW_TOKEN", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, both.through[name])
    with clew.open() as project:
        assert [execution.as_json() for execution in project.executions()] == documents
        assert (project.root, project.uid) == (own.root, own.uid)
        assert project.read("e1:clean.csv") == text
        outputs = [file.path for file in project.execution("e2").outputs]
        assert outputs == [str(both.project / "model.txt"), "stderr", "stdout"]
        made = project.exec(["sh", "-c", "exit 5"])
        assert (made.status, project.execution(made.uid).status) == (5, 5)
        with pytest.raises(NotFound):
            project.show("e777")
    monkeypatch.setenv("CLEW_TOKEN", "not-the-token")
    with clew.open() as project, pytest.raises(NotAllowed):
        project.executions()


def test_forgetting_and_sweeping_happen_there(both: Both) -> None:
    both.asked("exec", "--name", "doomed", "--", "sh", "-c", "echo unlike any other > big")
    (found,) = [one for one in both.json("list") if one["name"] == "doomed"]
    assert both.json("rm", "doomed", "--yes") == {"removed": [found["id"]], "dry_run": False}
    assert both.json("gc", "--yes")["files"] > 0
    own = json.loads(both.project.command("list", "--json").stdout)
    assert found["uid"] not in [one["uid"] for one in own]
    both.same("fsck")


# -- pipelines


def test_a_pipeline_runs_there(both: Both, tmp_path: Path) -> None:
    """Asked from a folder that has no project, and needs none."""
    for name, text in PIPELINES.items():
        (tmp_path / name).write_text(text)
    run = both.json("pipeline", "run", "sums.py", "-p", "a=5", cwd=tmp_path)
    assert (run["state"], run["outputs"]) == ("succeeded", {"Output": 9})
    assert not (tmp_path / ".clew").exists()
    name = run["id"]
    told = both.asked("pipeline", "run", "sums.py", "-p", "a=5", cwd=tmp_path)
    assert told.returncode == 0
    assert b"reused     add" in told.stderr
    assert b"succeeded in" in told.stderr
    for words in (f"show {name}", f"logs {name}/add", f"why {name}/add", "list"):
        both.same("pipeline", *words.split())
    both.same("show", name)
    both.same("trace", f"{name}/add")
    both.same("diff", name, f"r{int(name[1:]) + 1}")
    assert b"adding 5 2" in both.asked("pipeline", "logs", f"{name}/add", "-f").stdout
    repeated = both.asked("repeat", name)
    assert (repeated.returncode, repeated.stdout) == (0, b"")
    assert repeated.stderr.count(b"\n") == 3  # a line for each task, and one for all
    both.same("pipeline", "resume", name, status=2)


def test_a_run_continues_without_its_client(both: Both) -> None:
    gate = both.project / "gate"
    heard = ["env", "--default-signal=INT"]  # in the background interrupts are ignored
    words = [*heard, *CLEW, "pipeline", "run", "gated.py", "-p", f"gate={gate}"]
    settings: dict[str, Any] = {"cwd": both.project.folder, "env": both.through}
    asking = subprocess.Popen(words, stderr=subprocess.PIPE, **settings)
    wait_until("the task", (both.project / "gate.reached").exists)
    name = _last(both)["id"]
    following = subprocess.Popen(
        [*CLEW, "pipeline", "logs", f"{name}/wait", "-f"], stdout=subprocess.PIPE, **settings
    )
    asking.send_signal(signal.SIGINT)
    said = asking.communicate()[1].decode()
    assert asking.returncode == 130
    assert (
        f"{name} continues at {both.server.address}; clew pipeline cancel {name} stops it" in said
    )
    assert _last(both)["state"] == "running"
    stopped = both.json("pipeline", "cancel", name)
    assert stopped["state"] == "canceled"
    assert b"waiting\n" in following.communicate()[0]
    both.same("pipeline", "cancel", name, status=2)
    gate.touch()
    assert both.json("pipeline", "resume", name)["state"] == "succeeded"


def _last(both: Both) -> dict[str, Any]:
    found: list[dict[str, Any]] = both.json("pipeline", "list")
    return found[0]


def test_asking_loads_no_server() -> None:
    code = "import sys, clew.api.remote.project, clew.api.remote.pipelines;print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"fastapi", "uvicorn", "httpx2", "kfp", "asyncio"} & set(ran.stdout.split()) == set()
