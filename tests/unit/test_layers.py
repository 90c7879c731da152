"""The order of the rooms holds, and the contract that holds it bites."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lint(source: Path) -> subprocess.CompletedProcess[str]:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [lint_imports, "--no-cache", "--config", ROOT / "pyproject.toml"],
        env={**os.environ, "PYTHONPATH": str(source)},
        cwd=source,
        capture_output=True,
        text=True,
    )


def test_rooms_import_only_what_lies_below() -> None:
    ran = lint(ROOT / "src")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_an_import_upwards_is_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "clew", tmp_path / "clew", ignore=shutil.ignore_patterns("_*_"))
    lowest = tmp_path / "clew" / "errors.py"
    lowest.write_text(lowest.read_text() + "\nimport clew.project_directory\n")
    ran = lint(tmp_path)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "clew.errors -> clew.project_directory" in ran.stdout


def test_a_room_without_a_place_is_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "clew", tmp_path / "clew", ignore=shutil.ignore_patterns("_*_"))
    (tmp_path / "clew" / "attic.py").write_text("")
    ran = lint(tmp_path)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "attic" in ran.stdout
