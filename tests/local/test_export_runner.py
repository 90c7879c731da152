"""`clew export --format runner`: one file that runs an execution where Clew is not installed."""

import subprocess
import zipfile
from pathlib import Path

import pytest
from tests.driver import Project

BARE = {"PATH": "/usr/bin:/bin"}  # Debian's Python, without Clew and its packages


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    project = Project(tmp_path)
    project.write("data.txt", "b\na\n")
    project.sh("sort data.txt > sorted.txt; cat sorted.txt; ln -s data.txt link; exit 3")
    project("export", "e1", "--format", "runner", "-o", str(tmp_path / "run-e1"))
    (project / "data.txt").unlink()
    return tmp_path / "run-e1"


def run(runner: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([runner, *words], env=BARE, cwd="/", capture_output=True, text=True)


def test_it_runs_the_recorded_command_alone(runner: Path, tmp_path: Path) -> None:
    ran = run(runner)
    assert (ran.returncode, ran.stdout) == (3, "a\nb\n"), ran.stderr
    kept = run(runner, "--keep", str(tmp_path / "kept"))
    assert kept.returncode == 3
    (made,) = (tmp_path / "kept").rglob("sorted.txt")
    assert made.read_text() == "a\nb\n"
    shown = run(runner, "--show").stdout
    assert "data.txt" in shown
    assert shown.startswith("sh -c ")
    other = run(runner, "cat", "data.txt")
    assert (other.returncode, other.stdout) == (0, "b\na\n")


def test_it_asks_for_secrets_and_holds_none(tmp_path: Path) -> None:
    project = Project(tmp_path, API_TOKEN="not to be found")
    project.sh("echo ${#API_TOKEN} > length")
    project("export", "e1", "--format", "runner", "-o", str(tmp_path / "run-e1"))
    with zipfile.ZipFile(tmp_path / "run-e1") as archive:
        assert b"not to be found" not in archive.read("execution.json")
    refused = run(tmp_path / "run-e1")
    assert refused.returncode == 1
    assert "set API_TOKEN" in refused.stderr
