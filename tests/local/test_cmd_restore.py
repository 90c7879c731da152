"""`clew restore`: any version that was read or left, and nothing overwritten unseen."""

import base64
import os
from pathlib import Path

import pytest
from tests.driver import Project, workflow

RAW = "P1,1\nP2,\nP3,3\n"


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    return workflow(tmp_path, **graph_in_turn)


def test_a_lost_file_comes_back_as_it_was(clew: Project) -> None:
    path = clew.folder / "data/raw.csv"
    before = path.stat()
    path.unlink()
    done = clew.json("restore", "e1:data/raw.csv@input")
    assert done["path"] == str(path)
    assert (done["replaces"], done["loses"], done["size"]) == (None, False, len(RAW))
    assert path.read_text() == RAW
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_mode == before.st_mode


def test_what_is_stored_nowhere_is_not_overwritten(clew: Project) -> None:
    path = clew.write("data/raw.csv", "precious")
    code, message, hint = clew.error("restore", "e1:data/raw.csv@input", status=4)
    assert code == "not-allowed"
    assert "data/raw.csv" in message
    assert "--to" in hint
    assert path.read_text() == "precious"
    clew("restore", "e1:data/raw.csv@input", "--yes")
    assert path.read_text() == RAW


def test_what_is_stored_may_be_overwritten(clew: Project) -> None:
    path = clew.write("data/raw.csv", "second\n")
    clew.shell("cat data/raw.csv > copy")
    ran = clew("restore", "e1:data/raw.csv")
    assert path.read_text() == RAW
    back = ran.stderr.splitlines()[-1].partition("clew ")[2].split()
    assert clew(*back).stdout == "second\n"


def test_elsewhere(clew: Project) -> None:
    clew("restore", "e1:data/raw.csv", "--to", "new/place.csv")
    assert (clew.folder / "new/place.csv").read_text() == RAW
    (clew.folder / "there").mkdir()
    clew("restore", "e1:data/raw.csv", "--to", "there")
    assert (clew.folder / "there/raw.csv").read_text() == RAW


def test_a_dry_run_writes_nothing(clew: Project) -> None:
    path = clew.write("data/raw.csv", "precious")
    plan = clew.json("restore", "e1:data/raw.csv", "--dry-run")
    assert (plan["loses"], plan["dry_run"]) == (True, True)
    assert path.read_text() == "precious"


def test_every_version_is_listed_and_can_be_had(clew: Project) -> None:
    clew.write("log", "one\n")
    clew.shell("cat log > seen; echo two > log")
    versions = clew.json("restore", "--list", "log")
    assert [version["found"] for version in versions] == [True, False]
    contents = [clew("cat", version["version"]).stdout for version in versions]
    assert contents == ["one\n", "two\n"]
    rows = clew("restore", "--list", "log").stdout.splitlines()
    assert [row.split("\t")[2] for row in rows] == ["how", "found", "made"]
    assert clew.json("restore", "--list", versions[0]["version"]) == versions
    assert clew("restore", "--list", "nothing", status=5).stderr.startswith("error: ")
    assert clew("restore", "--list", "e1:nothing", status=5).stderr.startswith("error: ")


def test_a_name_that_is_not_text_has_an_id_that_can_be_typed(clew: Project) -> None:
    odd = os.fsdecode(b"not \xff text%FF")
    clew.write(odd, "odd\n")
    clew.shell("cat not* > /dev/null")
    (version,) = clew.json("restore", "--list", odd)
    assert version["path"] == str(clew.folder / "not \ufffd text%FF")
    assert base64.b64decode(version["path_b64"]) == os.fsencode(clew.folder / odd)
    assert clew("cat", version["version"]).stdout == "odd\n"
    done = clew.json("restore", version["version"], "--to", "back/")
    assert os.fsencode(odd) in os.listdir(os.fsencode(clew.folder / "back"))
    assert base64.b64decode(done["path_b64"]).endswith(os.fsencode(odd))


def test_a_place_that_cannot_be_written(clew: Project) -> None:
    clew.write("occupied", "a file")
    code, message, _ = clew.error(
        "restore", "e1:data/raw.csv", "--to", "occupied/raw.csv", status=4
    )
    assert code == "not-allowed"
    assert "occupied/raw.csv" in message


def test_names_that_mean_nothing(clew: Project) -> None:
    assert clew.error("restore", "e1", status=2)[0] == "usage"
    assert clew.error("restore", "e1:nothing", status=5)[0] == "not-found"
    assert clew.error("restore", "e1:data/clean.csv@input", status=5)[0] == "not-found"
    assert clew.error("restore", "blake3:00000000", status=5)[0] == "not-found"


def test_a_terminal_is_asked(clew: Project) -> None:
    import pty
    import subprocess

    path = clew.write("data/raw.csv", "precious")
    for answer, status, content in (("n\n", 4, "precious"), ("y\n", 0, RAW)):
        master, slave = pty.openpty()
        process = clew.start(
            "restore", "e1:data/raw.csv", stdin=slave, stderr=slave, stdout=subprocess.DEVNULL
        )
        os.close(slave)
        os.write(master, answer.encode())
        assert process.wait() == status
        os.close(master)
        assert path.read_text() == content
