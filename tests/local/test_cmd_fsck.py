"""`clew fsck`."""

from pathlib import Path

import pytest
from tests.driver import Project, workflow


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    return workflow(tmp_path, **graph_in_turn)


def test_a_sound_project(clew: Project) -> None:
    found = clew.json("fsck")
    assert found["ok"] is True
    assert found["checked"] > 0
    assert found["problems"] == []
    assert "no problem" in clew("fsck").stderr


def test_damage_is_found(clew: Project) -> None:
    for pack in (clew.folder / ".clew/store").rglob("*.pack"):
        content = bytearray(pack.read_bytes())
        content[len(content) // 3] ^= 1
        pack.chmod(0o600)
        pack.write_bytes(content)
    found = clew.json("fsck", status=3)
    assert found["ok"] is False
    assert all(problem.keys() == {"what", "where"} for problem in found["problems"])
    assert len(clew("fsck", status=3).stdout.splitlines()) == len(found["problems"])


def test_bytes_that_are_gone_are_missed(clew: Project) -> None:
    import shutil

    shutil.rmtree(clew.folder / ".clew/store")
    found = clew.json("fsck", status=3)
    digest = clew.json("restore", "--list", "model.txt")[0]["digest"]
    assert digest in {problem["where"] for problem in found["problems"]}
