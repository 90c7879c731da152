"""Bad places to record in: full, forbidden, gone.

Before the command has started this is a clear error, and the command is not started. Once it has
started, it runs to its own end with its own status, and what is wrong is said on stderr.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Word
from tests.local.processes import (
    TrackedProject,
    as_root,
    assert_recording_refused,
    finish_paused,
    mounted,
    start_paused,
)


@pytest.fixture
def clew(tmp_path: Path) -> Iterator[TrackedProject]:
    clew = TrackedProject(tmp_path)
    clew.write("data", "some data\n")
    yield clew
    clew.stop()


# -- full


@as_root
def test_a_disk_that_is_full_from_the_beginning(tmp_path: Path) -> None:
    with mounted(tmp_path / "project", "-t", "tmpfs", "-o", "size=1m", "none"):
        clew = _in(tmp_path)
        fill(clew.folder)
        assert_recording_refused(clew, said="o space left")
        (clew.folder / "ballast").unlink()
        assert clew.states() == {}
        clew("exec", "--no-content", "--", "true")


@as_root
def test_a_disk_that_gets_full_meanwhile(tmp_path: Path) -> None:
    with mounted(tmp_path / "project", "-t", "tmpfs", "-o", "size=12m", "none"):
        clew = _in(tmp_path)
        clew.write("data", "some data\n")
        clew("exec", "--", "cat", "data")
        line = "head -c 100000000 /dev/urandom > ballast 2> /dev/null; cat data; exit 5"
        said = finish_paused(start_paused(clew, line), status=5)
        assert "clew: warning: " in said
        assert "space" in said
        (clew.folder / "ballast").unlink()
        clew("exec", "--", "true")
        states = clew.states()
        assert states["e1"] == "done"
        assert states["e2"] in ("failed", "broken")
        assert clew.json("show", "e2")["command"][0] == "sh"
        assert clew("cat", "e1:data").stdout == "some data\n"
        assert clew.leftovers() == []
        clew.assert_intact()


@contextmanager
def small_disk(kind: str, place: Path, megabytes: int) -> Iterator[None]:
    if kind == "tmpfs":
        with mounted(place, "-t", "tmpfs", "-o", f"size={megabytes}m", "none"):
            yield
        return
    image = place.with_suffix(".img")
    with open(image, "wb") as file:
        file.truncate(megabytes << 20)
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("no mkfs.ext4")
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    with mounted(place, "-o", "loop", str(image)):
        yield


@as_root
@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_full_disk_can_be_asked_and_freed(tmp_path: Path, kind: str) -> None:
    with small_disk(kind, tmp_path / "project", 24):
        clew = _in(tmp_path)
        data = base64.b64encode(os.urandom(3_000_000)).decode()  # it hardly compresses
        clew.write("data", data)
        clew("exec", "--", "sh", "-c", "cat data > /dev/null; date > out")
        clew("exec", "--", "cat", "out")
        fill(clew.folder)
        before = shutil.disk_usage(clew.folder).free
        assert set(clew.states().values()) == {"done"}
        assert [found["id"] for found in clew.json("list")[::-1]] == ["e1", "e2"]
        assert clew.json("show", "e1", "--detail")["files"]
        assert clew.json("trace", "out")["nodes"]
        assert clew("cat", "e1:data").stdout == data
        assert clew.json("fsck")["ok"]
        assert_recording_refused(clew, said="o space left")
        assert "hint: clew gc frees" in clew("exec", "--", "true", status=125).stderr
        assert clew.json("gc", "--dry-run")["files"] == 0
        assert clew.json("rm", "e1", "--yes")["removed"] == ["e1"]
        fill(clew.folder, "more")  # whatever filled it goes on
        assert clew.json("gc", "--yes")["bytes"] > 2_500_000
        assert shutil.disk_usage(clew.folder).free > before + 1_000_000
        assert clew.json("fsck")["ok"]
        assert clew("cat", "e2:out").stdout == (clew.folder / "out").read_text()
        assert (clew.folder / ".clew" / "reserve").stat().st_size >= 1 << 18
        clew("exec", "--no-content", "--", "true")
        for ballast in ("ballast", "more"):
            (clew.folder / ballast).unlink()
        clew.assert_intact()


@as_root
def test_a_full_disk_without_a_reserve_gives_a_hint(tmp_path: Path) -> None:
    with small_disk("tmpfs", tmp_path / "project", 24):
        clew = _in(tmp_path)
        clew.write("data", "some data\n")
        clew("exec", "--", "cat", "data")
        (clew.folder / ".clew" / "reserve").unlink()
        fill(clew.folder)
        code, _, hint = clew.error("rm", "e1", "--yes", status=1)
        assert (code, hint.startswith("delete some files outside .clew")) == ("disk-full", True)
        assert clew.error("gc", "--yes", status=1)[0] == "disk-full"
        assert clew.states() == {"e1": "done"}
        (clew.folder / "ballast").unlink()
        clew("rm", "e1", "--yes")
        clew.assert_intact()
        clew("exec", "--", "true")
        assert (clew.folder / ".clew" / "reserve").exists()


@as_root
def test_a_spool_that_gets_full_meanwhile(clew: TrackedProject) -> None:
    spool = clew.folder / ".clew" / "spool"
    with mounted(spool, "-t", "tmpfs", "-o", "size=64k", "none"):
        line = "for i in $(seq 400); do /bin/echo $i > file$i; done; exit 6"
        said = finish_paused(start_paused(clew, line), status=6)
        assert "clew: warning: the trace ends before the command:" in said
        (found,) = clew.json("list")
        assert (found["state"], found["status"]) == ("failed", 6)
        assert any(gap["what"] == "trace" for gap in clew.json("show", "e1")["gaps"])
        assert clew("cat", "e1:data").stdout == "some data\n"
        clew.assert_intact()
        assert clew.leftovers() == []


def fill(folder: Path, name: str = "ballast") -> None:
    with open(folder / name, "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass


def _in(folder: Path) -> TrackedProject:
    """A project in a folder that is there already."""
    spare = TrackedProject(folder / "spare")
    spare.folder = folder / "project"
    spare("init")
    return spare


# -- forbidden


@as_root
def test_a_read_only_project_can_be_asked_but_not_added_to(clew: TrackedProject) -> None:
    clew("exec", "--", "cat", "data")
    with mounted(clew.folder, "--bind", str(clew.folder)):
        subprocess.run(["mount", "-o", "remount,ro,bind", clew.folder], check=True)
        assert_recording_refused(clew, said="cannot record")
        assert [found["id"] for found in clew.json("list")] == ["e1"]
        assert clew("cat", "e1:data").stdout == "some data\n"
        assert clew.json("show", "e1")["state"] == "done"
        assert clew.json("trace", "data")["nodes"]
        assert clew.json("fsck")["ok"]
        assert clew.error("gc", "--yes", status=4)[0] == "not-allowed"
        assert clew.error("rm", "e1", "--yes", status=4)[0] == "not-allowed"
        assert clew.error("note", "e1", "a=b", status=4)[0] == "not-allowed"
    assert clew.states() == {"e1": "done"}


class Powerless(TrackedProject):
    """`clew` as an ordinary user: as root, but without any of root's powers."""

    def start(self, *words: Word, **more: Any) -> subprocess.Popen[Any]:
        drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--"]

        def popen(command: list[str], **given: Any) -> subprocess.Popen[Any]:
            return subprocess.Popen([*drop, *command], **given)

        return super().start(*words, **{**more, "popen": popen})


@pytest.fixture
def powerless(tmp_path: Path) -> Iterator[Powerless]:
    clew = Powerless(tmp_path)
    clew.write("data", "some data\n")
    yield clew
    clew.stop()


@as_root
def test_a_project_of_another_user(powerless: Powerless) -> None:
    powerless("exec", "--", "cat", "data")
    hidden = powerless.folder / ".clew"
    for path in (hidden, *hidden.rglob("*")):
        shutil.chown(path, "nobody")
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert "belongs to nobody" in powerless.error("list", status=4)[1]
    powerless.environment["CLEW_PROJECT"] = str(powerless.folder)
    assert_recording_refused(powerless, said="ermi")  # permission, permitted
    assert [found["id"] for found in powerless.json("list")] == ["e1"]
    assert powerless("cat", "e1:data").stdout == "some data\n"
    assert powerless.json("fsck")["ok"]
    assert powerless.error("rm", "e1", "--yes", status=4)[0] == "not-allowed"
    hidden.chmod(0o700)
    shutil.chown(hidden, "nobody")
    del powerless.environment["CLEW_PROJECT"]
    ran = powerless.start("list")
    _, said = ran.communicate()
    assert ran.returncode in (4, 5)
    assert said.startswith("error: ")
    assert "\nhint: " in said


@as_root
def test_a_folder_where_no_project_can_be_made(powerless: Powerless) -> None:
    closed = powerless.folder.parent / "closed"
    closed.mkdir()
    shutil.chown(closed, "nobody")
    ran = powerless("exec", "--", "true", status=125, cwd=closed)
    assert "cannot make a project" in ran.stderr
    assert "\nhint: " in ran.stderr
    assert powerless.error("init", status=4, cwd=closed)[0] == "not-allowed"


@as_root
def test_an_input_that_may_not_be_read_any_more(powerless: Powerless) -> None:
    """The command had opened it; by the time it is to be kept nobody may. That is a gap."""
    powerless.write(
        "reads.py",
        "import os\n"
        "fd = os.open('data', os.O_RDONLY)\n"
        "os.chmod('data', 0)\n"
        "print(os.read(fd, 100).decode(), end='', flush=True)\n",
    )
    ran = powerless("exec", "--json", "--", sys.executable, "reads.py")
    assert ran.stdout == "some data\n"
    assert json.loads(ran.stderr.splitlines()[-1])["state"] == "done"
    path = str(powerless.folder / "data")
    files = {file["path"]: file for file in powerless.json("show", "e1", "--detail")["files"]}
    assert files[path]["read"]
    kept = powerless.start("cat", "e1:data@1")
    out, _ = kept.communicate()
    if kept.returncode == 0:  # it was taken in time
        assert out == "some data\n"
    else:
        gaps = powerless.json("show", "e1")["gaps"]
        assert any(gap["path"] == path and gap["why"] for gap in gaps)
    powerless.assert_intact()


@as_root
def test_an_input_without_read_permission(powerless: Powerless) -> None:
    (powerless.folder / "data").chmod(0)
    ran = powerless("exec", "--", "cat", "data", status=1)
    assert "Permission denied" in ran.stderr
    assert powerless.states() == {"e1": "failed"}
    assert powerless.json("fsck")["ok"]


# -- gone


def test_the_working_folder_is_gone_from_the_beginning(clew: TrackedProject) -> None:
    gone = clew.folder / "gone"
    gone.mkdir()
    script = f"""
import os, sys
os.rmdir({str(gone)!r})
from clew.cli.main import main
sys.exit(main(sys.argv[1:]))
"""

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        gone.mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, "-c", script, *words],
            cwd=gone,
            env={**clew.environment, **environment},
            capture_output=True,
            text=True,
        )

    for words in (["list"], ["exec", "--", "true"]):
        ran = run(*words)
        assert ran.returncode in (5, 125)
        assert ran.stderr.splitlines() == [
            "error: the current directory no longer exists",
            "hint: cd to a directory that exists",
        ]
    ran = run("exec", "--", "true", CLEW_PROJECT=str(clew.folder))
    assert ran.returncode == 125
    assert "Traceback" not in ran.stderr
    assert run("list", CLEW_PROJECT=str(clew.folder)).returncode == 0


def test_the_working_folder_vanishes_meanwhile(clew: TrackedProject) -> None:
    line = (
        "mkdir gone; cd gone; echo x > inside; rm inside; rmdir ../gone; cat nothing;"
        " /bin/echo still > ../after; exit 4"
    )
    finish_paused(start_paused(clew, line), status=4)
    (found,) = clew.json("list")
    assert (found["state"], found["status"]) == ("failed", 4)
    clew.assert_intact()


def test_the_project_is_deleted_meanwhile(clew: TrackedProject) -> None:
    process = start_paused(clew, "cat data; exit 3")
    shutil.rmtree(clew.folder / ".clew")
    said = finish_paused(process, status=3)
    assert "clew: warning: " in said
    assert not (clew.folder / ".clew").exists()
    assert clew.error("list", status=5)[0] == "no-project"


def test_the_spool_is_deleted_meanwhile(clew: TrackedProject) -> None:
    process = start_paused(clew, "cat data > more; exit 3")
    shutil.rmtree(clew.folder / ".clew" / "spool")
    finish_paused(process, status=3)
    assert clew.states() == {"e1": "failed"}
    assert clew("cat", "e1:data").stdout == "some data\n"
    clew("exec", "--", "true")
    clew.assert_intact()
