"""`make demo` and `make test` set up what they need, or print the one command that does."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = (
    *("Makefile", "tools/debian-packages", "pyproject.toml", "constraints.txt", "setup.py"),
    "examples/training/requirements.txt",
)
TOOLS = ("sh", "make", "id", "ls", "apt-get", "sed")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A copy of what sets up, which anybody may use; and a PATH with neither compiler nor sudo."""
    for name in COPIED:
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "copy" / name)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found is None:
            pytest.skip(f"there is no {tool} here")
        (tmp_path / "bin" / tool).symlink_to(found)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    return tmp_path


def plainly(bare: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it as a user who is not root."""
    drop: list[str] = []
    if os.geteuid() == 0:
        drop = [str(shutil.which("setpriv")), "--reuid=65534", "--regid=65534", "--clear-groups"]
    return subprocess.run(
        [*drop, *words],
        cwd=bare / "copy",
        env={"PATH": str(bare / "bin"), "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
    )


def commands(said: str) -> list[str]:
    return [line.strip() for line in said.splitlines() if line.startswith("  ")]


@pytest.mark.parametrize("target", ["demo", "test", "check"])
def test_without_root_and_sudo_the_one_command_is_printed(bare: Path, target: str) -> None:
    ran = plainly(bare, "make", target)
    assert ran.returncode == 2
    (command,) = commands(ran.stderr)
    assert command.startswith("sudo apt-get install --no-install-recommends -y ")
    assert {"gcc", "libc6-dev"} <= set(command.split())
    assert ("golang-go" in command.split()) is (target == "test")
    assert not (bare / "copy" / ".venv").exists()


def test_what_is_there_is_not_asked_for(bare: Path) -> None:
    for tool in ("cc", "as", "ld"):
        found = shutil.which(tool)
        assert found is not None
        (bare / "bin" / tool).symlink_to(found)
    ran = plainly(bare, "tools/debian-packages", "build")
    assert ran.returncode == 1
    assert commands(ran.stderr)[0].endswith(" -y python3-venv")
