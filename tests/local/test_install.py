"""`pip install` builds the witness, and does without it where there is no compiler."""

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


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def install(source: Path, target: Path, *, path: str) -> str:
    """Install into `target`, offline: what builds it is in this environment already."""
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "-v", "--no-deps", "--no-compile"),
            *("--no-build-isolation", "--target", target, source),
        ],
        env={**os.environ, "PATH": path, "CC": ""},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def clew(target: Path | None, *words: str, work: Path) -> subprocess.CompletedProcess[str]:
    """The one that was installed there, or the one of this environment, in a project's folder."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("CLEW_")}
    return subprocess.run(
        [sys.executable, "-m", "clew", *words],
        env=settings if target is None else {**settings, "PYTHONPATH": str(target)},
        cwd=work,
        capture_output=True,
        text=True,
    )


def test_with_a_compiler(source: Path, tmp_path: Path, work: Path) -> None:
    target = tmp_path / "installed"
    install(source, target, path=os.environ["PATH"])
    native = target / "clew" / "_native"
    built = {path.name for path in native.iterdir()}
    programs = {"clew-layer", "clew-mount", "clew-sandbox", "clew-step", "clew-trace"}
    assert built == programs | {"libclew-chunk.so", "libclew-inject.so"}
    assert list((target / "clew").rglob("*.sql"))
    ran = clew(target, "exec", "--", "sh", "-c", "echo x > made", work=work)
    assert ran.returncode == 0, ran.stderr
    assert clew(target, "cat", "e1:made", work=work).stdout == "x\n"


ANSWERED = [
    ["list"],
    ["show", "e1", "--detail"],
    ["trace", "made"],
    ["trace", "made", "--html", "-o", "made.html"],
    ["cat", "e1:made"],
    ["restore", "e1:made", "--to", "back"],
    ["restore", "--list", "made"],
    ["note", "e1", "seen=yes"],
    ["source", "made", "https://example.org/made"],
    ["export", "e1", "--format", "prov-n"],
    ["export", "e1", "--format", "ro-crate", "-o", "crate"],
    ["fsck"],
    ["rm", "e1", "--yes"],
    ["gc", "--yes"],
]


def test_without_a_compiler(source: Path, tmp_path: Path, work: Path) -> None:
    """It says so, refuses to record, and answers whatever is asked of a project from elsewhere."""
    target, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    said = install(source, target, path=str(empty))
    assert "the system-call witness was NOT built: there is no C compiler" in said
    assert [path.name for path in (target / "clew/_native").iterdir()] == ["not-built.txt"]
    assert clew(target, "init", work=work).returncode == 0
    assert clew(None, "exec", "--", "sh", "-c", "echo x > made", work=work).returncode == 0
    refused = clew(target, "exec", "--", "true", work=work)
    assert refused.returncode == 125
    assert "compiler" in refused.stderr
    for words in ANSWERED:
        ran = clew(target, *words, work=work)
        assert ran.returncode == 0, f"{words}: {ran.stderr}"
