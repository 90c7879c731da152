"""Projects that are found by walking up, and were put there by somebody else."""

import os
from pathlib import Path

import pytest
from tests.driver import Project


def test_a_project_with_links_removes_nothing_elsewhere(tmp_path: Path) -> None:
    """Clew removes what killed executions left in the spool: here, a folder of the user."""
    clew = Project(tmp_path)
    precious = tmp_path / "home/photos"
    precious.mkdir(parents=True)
    (clew.folder / ".clew/spool").rmdir()
    (clew.folder / ".clew/spool").symlink_to(tmp_path / "home")
    code, message, _ = clew.error("list", status=4)
    assert (code, "is a link" in message) == ("not-allowed", True)
    assert "is a link" in clew("exec", "--", "true", status=125).stderr
    assert precious.is_dir()


def test_a_link_in_the_spool_is_removed_alone(tmp_path: Path) -> None:
    clew = Project(tmp_path)
    inner = tmp_path / "home/inner"
    inner.mkdir(parents=True, mode=0o755)
    (clew.folder / ".clew/spool/dead").symlink_to(inner.parent)
    clew("list")
    assert not (clew.folder / ".clew/spool/dead").is_symlink()
    assert inner.stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
def test_a_project_of_another_user_must_be_named(tmp_path: Path) -> None:
    clew = Project(tmp_path)
    os.chown(clew.folder / ".clew", 61234, 61234)
    inside = clew.folder / "work"
    inside.mkdir()
    assert "belongs to 61234" in clew("exec", "--", "true", status=125, cwd=inside).stderr
    for words in (("list",), ("init", "..")):
        code, message, hint = clew.error(*words, status=4, cwd=inside)
        assert (code, "belongs to 61234" in message) == ("not-allowed", True)
        assert hint.endswith(f"CLEW_PROJECT={clew.folder}")
    named = {**clew.environment, "CLEW_PROJECT": str(clew.folder)}
    clew("exec", "--", "true", cwd=inside, env=named)
    clew("list", cwd=inside, env={**clew.environment, "SUDO_UID": "61234"})
