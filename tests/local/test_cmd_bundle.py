"""`clew bundle create`: one file with an execution and everything that it needs."""

import zipfile
from pathlib import Path

import pytest
from tests.driver import Project

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("bundle"))
    made.write("data.csv", "3\n1\n2\n")
    made.write("private.csv", "9\n")
    made.write("settings.txt", f"key {TOKEN}\n")
    made("exec", "--", "sh", "-c", "cat data.csv private.csv settings.txt | sort > sorted.csv")
    return made


def other_project(tmp_path: Path) -> Project:
    return Project(tmp_path / "other", init=False)


def test_a_bundle_is_pulled_and_repeated(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "paper.clew.zip"
    project("bundle", "create", "e1", "-o", str(file))
    assert project.error("bundle", "create", "e1", "-o", str(file), status=1)[0] == "exists"
    there = other_project(tmp_path)
    assert [e["id"] for e in there.json("pull", str(file), "--list")] == ["e1"]
    assert not (there / ".clew").exists()
    there("pull", str(file))
    assert there.json("remote", "list") == []
    assert there.json("list")[0]["made_elsewhere"]
    assert there("cat", f"e1:{project / 'private.csv'}").stdout == "9\n"
    assert "identical" in there("repeat", "e1").stderr
    assert there.error("push", str(file), status=4)[0] == "not-allowed"


def test_what_it_has_can_be_reviewed(project: Project) -> None:
    files = project.json("bundle", "create", "e1", "--list", "--exclude", "*/private.csv")
    own = {Path(f["path"]).name: f["secret"] for f in files if f["class"] != "system"}
    assert own["settings.txt"] == "token"
    assert own["data.csv"] is None
    assert "private.csv" not in own
    shown = project("bundle", "create", "e1", "--list")
    assert shown.stdout.splitlines()[1].endswith("settings.txt")
    assert "2 files may contain a secret" in shown.stderr


def test_excluded_files_are_not_in_it(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "paper.clew.zip"
    project("bundle", "create", "e1", "-o", str(file), "--exclude", "*/private.csv")
    there = other_project(tmp_path)
    there("pull", str(file))
    assert there.error("cat", f"e1:{project / 'private.csv'}", status=5)[0] == "no-content"
    assert there("cat", f"e1:{project / 'data.csv'}").stdout == "3\n1\n2\n"
    assert (
        there.error("repeat", "e1", status=5)[2] == "ask its author for a record with these files"
    )
    assert there.json("fsck")["ok"]


def test_bad_bundles(project: Project, tmp_path: Path) -> None:
    there = other_project(tmp_path)
    file = tmp_path / "paper.clew.zip"
    project("bundle", "create", "e1", "-o", str(file))
    with zipfile.ZipFile(file) as whole, zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        for name in whole.namelist():
            packed.writestr(name, whole.read(name), zipfile.ZIP_DEFLATED)
    (tmp_path / "a.zip").write_bytes(b"PK not a zip")
    (tmp_path / "c.zip").write_bytes(file.read_bytes()[:-100])
    newer = bytearray(file.read_bytes())
    newer[newer.index(b"PK\x01\x02") + 6] = 255  # the version that it takes to read it
    (tmp_path / "d.zip").write_bytes(newer)
    for name in ("a.zip", "b.zip", "c.zip", "d.zip", "none.zip"):
        ran = there.command("pull", str(tmp_path / name))
        assert ran.returncode in (3, 5), name
        assert b"Traceback" not in ran.stderr
        assert b"created" not in ran.stderr
        assert not (there / ".clew").exists()
