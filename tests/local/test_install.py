"""`pip install` builds the witness, and does without it where there is no compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy to build in: a build leaves files beside the sources."""
    copy = tmp_path / "source"
    copy.mkdir()
    for name in ("src", "native"):
        leave_out = shutil.ignore_patterns("_native", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, copy / name, ignore=leave_out)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


def install(source: Path, target: Path, *, path: str) -> str:
    """Install into `target`, offline: what builds it is in this environment already."""
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "-v", "--no-deps"),
            *("--no-build-isolation", "--target", target, source),
        ],
        env={**os.environ, "PATH": path, "CC": ""},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def clew(target: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clew", *words],
        env={**os.environ, "PYTHONPATH": str(target)},
        cwd=target,
        capture_output=True,
        text=True,
    )


def test_with_a_compiler(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    install(source, target, path=os.environ["PATH"])
    native = target / "clew" / "_native"
    assert sorted(path.name for path in native.iterdir()) == ["clew-trace", "libclew-inject.so"]
    assert os.access(native / "clew-trace", os.X_OK)
    assert list((target / "clew").rglob("*.sql"))


def test_without_a_compiler(source: Path, tmp_path: Path) -> None:
    target, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    said = install(source, target, path=str(empty))
    assert "the system-call witness was NOT built: there is no C compiler" in said
    assert [path.name for path in (target / "clew/_native").iterdir()] == ["not-built.txt"]
    assert clew(target, "init").returncode == 0
    assert clew(target, "list").returncode == 0
    refused = clew(target, "exec", "--", "true")
    assert refused.returncode == 125
    assert "compiler" in refused.stderr
