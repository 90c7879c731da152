"""`clew status`: what was changed in a checkout, by bytes and mode; the state of a project."""

import os
import sys
from pathlib import Path

import pytest
from tests.driver import Project
from tests.wait import wait_until

from clew.store import Signature, Store


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    clew = Project(tmp_path, **graph_in_turn)
    clew.write("a.txt", "a\n")
    clew.write("b/c.txt", "c\n")
    clew.write("run.sh", "cat a.txt b/c.txt\n")
    clew.shell("sh run.sh")
    clew("checkout", "e1", "work")
    return clew


def paths(found: dict[str, list[dict[str, str]]]) -> dict[str, list[str]]:
    return {k: [one["path"] for one in found[k]] for k in ("modified", "added", "deleted")}


def test_without_changes(clew: Project) -> None:
    found = clew.json("status", "work")
    assert (found["execution"], found["folder"]) == ("e1", str(clew.folder / "work"))
    assert paths(found) == {"modified": [], "added": [], "deleted": []}
    os.utime(clew.folder / "work/a.txt")  # another time is no change
    ran = clew("status", "work")
    assert (ran.stdout, ran.stderr) == ("", "work is a checkout of e1, without changes\n")


def test_every_kind_of_change(clew: Project) -> None:
    clew.write("work/a.txt", "b\n")  # of the same length
    (clew.folder / "work/run.sh").chmod(0o755)
    (clew.folder / "work/b/c.txt").unlink()
    clew.write("work/b/d.txt", "d\n")
    (clew.folder / "work/link").symlink_to("a.txt")
    clew.write("work/_outside/etc/x.conf", "x\n")
    (clew.folder / "work/empty").mkdir()
    below = clew.folder / "work/b"
    found = clew.json("status", cwd=below)
    assert paths(found) == {
        "modified": ["a.txt", "run.sh"],
        "added": ["_outside/etc/x.conf", "b/d.txt", "link"],
        "deleted": ["b/c.txt"],
    }
    content, mode = found["modified"]
    assert (content["content"], content["mode"]) == (True, None)
    assert (mode["content"], mode["mode"]) == (False, ["0644", "0755"])
    assert found["added"][0]["original"] == "/etc/x.conf"
    assert found["deleted"][0]["original"] == str(clew.folder / "b/c.txt")
    assert clew("status", cwd=below).stdout.splitlines() == [
        "modified  a.txt",
        "mode      run.sh (0644 to 0755)",
        "added     _outside/etc/x.conf",
        "added     b/d.txt",
        "added     link",
        "deleted   b/c.txt",
    ]
    clew.write("work/a.txt", "a\n")
    (clew.folder / "work/run.sh").chmod(0o644)
    assert clew.json("status", cwd=below)["modified"] == []


def test_a_change_that_keeps_size_and_time(clew: Project) -> None:
    clew("status", "work")
    path = clew.folder / "work/a.txt"
    before = path.stat()
    path.write_text("b\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert paths(clew.json("status", "work"))["modified"] == ["a.txt"]


def test_a_file_became_a_folder_or_a_link(clew: Project) -> None:
    (clew.folder / "work/a.txt").unlink()
    clew.write("work/a.txt/inner", "i\n")
    (clew.folder / "work/run.sh").unlink()
    (clew.folder / "work/run.sh").symlink_to("/bin/true")
    assert paths(clew.json("status", "work")) == {
        "modified": ["run.sh"],
        "added": ["a.txt/inner"],
        "deleted": ["a.txt"],
    }


def test_known_files_are_not_read_again(clew: Project, tmp_path: Path) -> None:
    """Once a file has been looked at, its state tells its bytes: as a witness sees it."""
    path = clew.folder / "work/a.txt"

    def remembered() -> bool:  # a file that changed just now is not trusted yet
        clew("status", "work")
        with Store(clew.folder / ".clew/store") as store:
            return store.recall([Signature.of(path.stat())]) != [None]

    wait_until("a file old enough to be remembered", remembered)
    (clew.folder / "work/b/c.txt").write_text("new\n")
    watch = Project(tmp_path / "watch")
    words = (sys.executable, "-m", "clew", "status", str(clew.folder / "work"))
    watch("exec", "--", *words)
    read = {file["path"] for file in watch.json("show", "e1", "--detail")["files"]}
    assert str(clew.folder / "work/b/c.txt") in read
    assert str(path) not in read


def test_outside_a_project(clew: Project, tmp_path: Path) -> None:
    assert clew.error("status", cwd=tmp_path, status=5)[0] == "no-project"


def test_a_project_that_was_moved(clew: Project, tmp_path: Path) -> None:
    clew("checkout", "e1", str(tmp_path / "out"))
    clew.folder.rename(tmp_path / "moved")
    inside = tmp_path / "moved/work"
    assert clew.json("status", cwd=inside)["execution"] == "e1"  # found by walking up
    assert clew.error("status", cwd=tmp_path / "out", status=5)[0] == "no-project"
    clew.environment["CLEW_PROJECT"] = str(tmp_path / "moved")
    assert clew.json("status", cwd=tmp_path / "out")["execution"] == "e1"


def test_another_project(clew: Project, tmp_path: Path) -> None:
    other = Project(tmp_path / "other")
    clew.environment["CLEW_PROJECT"] = str(other.folder)
    code, message, _ = clew.error("status", cwd=clew.folder / "work", status=5)
    assert code == "not-found" and "another project" in message


@pytest.fixture
def project(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    project = Project(tmp_path, **graph_in_turn)
    project.write("data.csv", "1\n")
    project.sh("cat data.csv > sum.txt; cp sum.txt scratch; rm scratch")
    return project


def test_files_that_changed_since_they_were_recorded(project: Project) -> None:
    with project.opened() as opened:
        files = opened.status().files
        assert (files.checked, files.modified, files.missing, files.unchecked) == (2, (), (), ())
        before = (project / "data.csv").stat()
        project.write("data.csv", "2\n")  # of the same size and time
        os.utime(project / "data.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
        (project / "sum.txt").unlink()
        files = opened.status().files
    assert [file.path for file in files.modified] == [str(project / "data.csv")]
    assert [(file.path, file.execution) for file in files.missing] == [
        (str(project / "sum.txt"), "e1")
    ]
    assert project("status").stdout.splitlines()[-3:] == [
        "files     2 recorded files of yours: 1 modified, 1 missing",
        "modified  data.csv  (e1)",
        "missing   sum.txt  (e1)",
    ]


def test_a_later_execution_tracks_the_new_content_and_a_repeat_does_not(project: Project) -> None:
    project.write("data.csv", "22\n")
    project.sh("cat data.csv > sum.txt")
    project("repeat", "e1")  # writes another sum.txt, in a sandbox
    with project.opened() as opened:
        files = opened.status().files
    assert (files.checked, files.modified, files.missing) == (2, (), ())


def test_files_that_are_too_large_are_not_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.api.local.status.MOST_BYTES", 0)
    project.write("data.csv", "2\n")
    with project.opened() as opened:
        files = opened.status().files
    assert str(project / "data.csv") in {file.path for file in files.unchecked}
    assert files.checked + files.unchecked_count == 2


def test_the_store_and_what_gc_frees(project: Project) -> None:
    with project.opened() as opened:
        before = opened.status().store
        assert before.bytes > 0 and before.reclaimable == 0
        opened.remove(["e1"])
        after = opened.status()
    assert (after.executions, after.files.checked) == (0, 0)
    assert after.store.reclaimable


def test_executions_that_the_default_remote_lacks(project: Project, tmp_path: Path) -> None:
    url = str(tmp_path / "remote")
    assert project.json("status")["remote"] is None
    project("remote", "add", "lab", url)
    lab = {"name": "lab", "url": url, "error": None}
    assert project.json("status")["remote"] == {**lab, "executions": ["e1"]}
    project("push")
    project.sh("true")
    assert project.json("status")["remote"] == {**lab, "executions": ["e2"]}
    (tmp_path / "remote/format").write_text("clew-remote 99\n")
    broken = project.json("status")["remote"]
    assert broken["executions"] == [] and "another format" in broken["error"]
