"""More than bytes: what was absent, listed, only looked at, or reached through a link."""

import shutil
import sys
from pathlib import Path

import blake3
import pytest
from tests.driver import Project
from tests.local.programs.compiling import compiled


def test_absent_files(project: Project) -> None:
    ran = project.sh("cat nothing; [ -f none ] || echo no; . ./absent.sh", input=b"")
    assert ("cat", "absent", "ENOENT") in ran.looked("nothing")
    assert ("sh", "absent", "ENOENT") in ran.looked("none")
    code = "import os\ntry: open('n')\nexcept OSError: pass\nos.path.exists('m')"
    ran = project.exec(sys.executable, "-c", code)
    name = Path(sys.executable).name
    assert (name, "absent", "ENOENT") in ran.looked("n")
    assert (name, "absent", "ENOENT") in ran.looked("m")


def test_existence_and_times(project: Project) -> None:
    (project / "f").write_text("x")
    ran = project.sh("[ -f f ] && [ -x f ] || true")
    kinds = {kind for _, kind, _ in ran.looked("f")}
    assert "times" in kinds
    assert "f" not in ran.roles()


def test_what_make_looks_at(project: Project) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    (project / "in").write_text("x\n")
    (project / "Makefile").write_text("out: in\n\tcat in > out\n")
    first = project.exec("make")
    assert first.cat("out") == b"x\n"
    assert ("make", "absent", "ENOENT") in first.looked("out")
    second = project.exec("make")
    mtime = (project / "out").stat().st_mtime_ns
    assert any(
        kind == "times" and answer.endswith(f" {mtime}") for _, kind, answer in second.looked("out")
    )
    assert second.roles() == {"Makefile": "input"}


def test_listings(project: Project) -> None:
    (project / "d").mkdir()
    (project / "d/b").touch()
    (project / "d/a").touch()
    ran = project.sh("echo d/*")
    assert ran.out == b"d/a d/b\n"
    (answer,) = {answer for _, kind, answer in ran.looked("d") if kind == "listing"}
    assert answer == f"blake3:{blake3.blake3(b'a' + bytes(1) + b'b').hexdigest()}"
    python = project.exec(sys.executable, "-c", "import os; print(len(os.listdir('d')))")
    assert {answer for _, kind, answer in python.looked("d") if kind == "listing"} == {answer}


def test_links_on_the_way(project: Project) -> None:
    (project / "real").mkdir()
    (project / "real/f").write_text("x\n")
    (project / "one").symlink_to("real")
    (project / "two").symlink_to("one/f")
    ran = project.sh("cat two; readlink one; realpath two")
    assert ran.file("real/f")["role"] == "input"
    assert ("cat", "link", "real") in ran.looked("one")
    assert ("cat", "link", "one/f") in ran.looked("two")
    assert ("readlink", "link", "real") in ran.looked("one")
    assert ("realpath", "link", "one/f") in ran.looked("two")
    assert set(ran.roles()) == {"real/f"}


def test_a_ring_after_four_gigabytes_of_records(project: Project) -> None:
    """Positions in the ring do not jump where 32 bits overflow."""
    ran = project.exec(compiled("forge", project.folder), "wrap", "absent")
    assert (ran.status, ran.out) == (0, b"done\n"), ran.err
    for number in range(100):
        assert ("forge", "absent", "ENOENT") in ran.looked(f"absent{number}")
