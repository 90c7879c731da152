"""`clew checkout`: the files an execution found, whole or not at all, and nothing lost for them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.driver import Project

STAMP = 1_234_567_890_123_456_789


def tree(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file below: its bytes, mode and time; the state file by its words alone."""
    return {
        os.fsdecode(os.path.relpath(os.path.join(at, name), os.fsencode(folder))): (
            path.read_bytes(),
            path.stat().st_mode & 0o777,
            0 if name == b".clew-checkout" else path.stat().st_mtime_ns,
        )
        for at, _, names in os.walk(os.fsencode(folder))
        for name in names
        for path in [Path(os.fsdecode(os.path.join(at, name)))]
    }


def files(folder: Path) -> dict[str, str]:
    return {n: b.decode() for n, (b, _, _) in tree(folder).items() if n != ".clew-checkout"}


def litter(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".clew-checkout-")]


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    """e1 reads run.sh, data/in.csv and ../side.toml; e2 reads other.txt alone."""
    clew = Project(tmp_path, **graph_in_turn)
    clew.write("run.sh", "sort data/in.csv ../side.toml > out.txt; date > when.txt\n").chmod(0o755)
    os.utime(clew.write("data/in.csv", "b\na\n"), ns=(STAMP, STAMP))
    (clew.folder.parent / "side.toml").write_text("c\n")
    clew.write("other.txt", "other\n")
    clew.write("never-read.txt", "x\n")
    clew.shell("./run.sh", "--name", "sorting")
    clew.shell("cat other.txt")
    return clew


def test_what_it_found_is_laid_out(clew: Project) -> None:
    clew.write("data/in.csv", "changed since\n")
    done = clew.json("checkout", "e1", "work")
    folder = clew.folder / "work"
    assert (done["execution"], done["folder"], done["missing"]) == ("e1", str(folder), [])
    found = tree(folder)
    outside = f"_outside{clew.folder.parent}/side.toml"
    assert set(found) == {"run.sh", "data/in.csv", outside, ".clew-checkout"}
    assert found["data/in.csv"] == (b"b\na\n", 0o644, STAMP)
    assert found["run.sh"][1:] == (0o755, (clew.folder / "run.sh").stat().st_mtime_ns)
    assert found[outside][0] == b"c\n"
    assert done["files"] == 3
    state = json.loads(found[".clew-checkout"][0])
    assert state["execution"] == done["uid"]
    assert {kept["path"] for kept in state["files"]} == {
        str(clew.folder / "run.sh"),
        str(clew.folder / "data/in.csv"),
        str(clew.folder.parent / "side.toml"),
    }


def test_it_is_called_as_the_execution_was(clew: Project) -> None:
    uid = clew.json("checkout", "e1")["uid"]
    clew("checkout", "sorting")
    assert (clew.folder / "e1/run.sh").exists()
    assert (clew.folder / "sorting/run.sh").exists()
    (clew.folder / "below").mkdir()
    clew("checkout", uid, cwd=clew.folder / "below")
    assert (clew.folder / "below/e1/run.sh").exists()


def test_a_clean_checkout_is_switched(clew: Project) -> None:
    clew("checkout", "e1", "work")
    folder = clew.folder / "work"
    folder.chmod(0o711)
    before = folder.stat().st_ino
    clew("checkout", "e2", "work")
    assert files(folder) == {"other.txt": "other\n"}
    assert not (folder / "data").exists()
    assert folder.stat().st_ino == before  # whoever stands in it still does
    assert folder.stat().st_mode & 0o777 == 0o711
    assert litter(clew.folder) == []
    assert (folder / "other.txt").stat().st_nlink == 1


def test_from_inside_and_outside_the_project(clew: Project, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    clew("checkout", "e1", str(place))
    clew("checkout", "e2", ".", cwd=place)  # the project is found by the checkout
    assert files(place) == {"other.txt": "other\n"}
    assert clew.json("list", cwd=place)[::-1][0]["id"] == "e1"
    line = f"{sys.executable} -m clew checkout e1 . && cat data/in.csv"
    ran = subprocess.run(
        ["sh", "-c", line], cwd=place, env=clew.environment, capture_output=True, text=True
    )
    assert ran.stdout == "b\na\n", ran.stderr


@pytest.mark.parametrize(
    "change", ["echo >> data/in.csv", "rm run.sh", "chmod 600 run.sh", "echo > new"]
)
def test_changes_are_not_overwritten(clew: Project, change: str) -> None:
    clew("checkout", "e1", "work")
    folder = clew.folder / "work"
    assert os.system(f"cd {folder} && {change}") == 0
    before = tree(folder)
    code, message, hint = clew.error("checkout", "e2", "work", status=4)
    assert code == "not-allowed"
    assert f"changes: {change.rsplit(maxsplit=1)[-1]}" in message
    assert "clew commit" in hint
    assert clew.error("checkout", "e1", "work", status=4)[0] == "not-allowed"
    assert tree(folder) == before
    assert litter(clew.folder) == []


def test_a_directory_that_is_not_a_checkout_is_not_changed(clew: Project) -> None:
    kept = clew.write("mine/notes.txt", "mine\n")
    for place in ("mine", "mine/notes.txt", "."):
        code, _, hint = clew.error("checkout", "e1", place, status=4)
        assert code == "not-allowed" and "another" in hint
    assert kept.read_text() == "mine\n"
    (clew.folder / "empty").mkdir()
    clew("checkout", "e1", "empty")
    clew.error("checkout", "e2", "empty/inner", status=4)
    assert not (clew.folder / "empty/inner").exists()


def test_a_checkout_of_another_project_is_not_changed(clew: Project, tmp_path: Path) -> None:
    clew("checkout", "e1", str(tmp_path / "work"))
    other = Project(tmp_path / "other")
    other.shell("true")
    before = tree(tmp_path / "work")
    assert "another project" in other.error("checkout", "e1", str(tmp_path / "work"), status=4)[1]
    assert tree(tmp_path / "work") == before


def test_a_damaged_state_is_reported(clew: Project) -> None:
    clew("checkout", "e1", "work")
    clew.write("work/.clew-checkout", "{")
    assert clew.error("checkout", "e2", "work", status=3)[0] == "damaged"
    assert clew.error("status", "work", status=3)[0] == "damaged"


def test_names_that_are_ours_or_no_text(clew: Project, tmp_path: Path) -> None:
    odd = os.path.join(os.fsencode(clew.folder), b"odd\xff\n.csv")
    Path(os.fsdecode(odd)).write_text("odd")
    clew.write("_outside/x", "x")
    clew.write(".clew-checkout", "no state")
    clew.shell("cat odd* _outside/x .clew-checkout", "--name", "strange")
    clew("checkout", "strange", str(tmp_path / "work"))
    found = files(tmp_path / "work")
    assert found == {
        os.fsdecode(b"odd\xff\n.csv"): "odd",
        f"_outside{clew.folder}/_outside/x": "x",
        "_.clew-checkout": "no state",
    }
    assert clew.json("status", str(tmp_path / "work"))["modified"] == []
    assert os.system(f"rm {tmp_path}/work/odd*") == 0
    [gone] = clew.json("status", str(tmp_path / "work"))["deleted"]
    assert gone["path_b64"] and gone["original_b64"]


def test_what_was_not_kept_is_named(clew: Project) -> None:
    clew.shell("cat other.txt run.sh", "--exclude", "*.txt", "--name", "partly")
    clew("rm", "e2", "--yes")
    clew("gc", "--yes")
    done = clew.json("checkout", "partly")
    assert [found["path"] for found in done["missing"]] == ["other.txt"]
    assert set(files(clew.folder / "partly")) == {"run.sh"}
    assert clew.json("status", "partly")["deleted"] == []


def test_bytes_that_are_gone_leave_everything_as_it_was(clew: Project) -> None:
    clew("checkout", "e2", "work")
    before = tree(clew.folder / "work")
    for pack in (clew.folder / ".clew/store/packs").iterdir():
        pack.unlink()
    assert clew.error("checkout", "e1", "work", status=3)[0] == "damaged"
    assert clew.error("checkout", "e1", "fresh", status=3)[0] == "damaged"
    assert tree(clew.folder / "work") == before
    assert not (clew.folder / "fresh").exists()
    assert litter(clew.folder) == []


def test_words(clew: Project) -> None:
    said = clew("checkout", "e1", "work").stderr
    assert said == "checked out e1 to work: 3 files, 63 B\n"
    assert clew.error("checkout", "e9", status=5)[0] == "not-found"
