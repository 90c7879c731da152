"""Whether all that was met is as it was met."""

import os
from pathlib import Path

from clew.run.launch.input_snapshot import InputSnapshot


def standing(*paths: Path) -> InputSnapshot:
    return InputSnapshot.of_paths(os.fsencode(path) for path in paths)


def test_what_is_there_changes(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    found = standing(file)
    assert found.changed() is None
    file.write_text("other")
    assert found.changed() == str(file)
    assert standing(file).changed() is None


def test_a_link_leads_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text("")
    (tmp_path / "link").symlink_to("a")
    found = standing(tmp_path / "link")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("b")
    assert found.changed() == str(tmp_path / "link")


def test_what_was_missing_comes(tmp_path: Path) -> None:
    found = standing(tmp_path / "missing")
    (tmp_path / "other").write_text("")
    assert found.changed() is None
    (tmp_path / "missing").write_text("")
    assert found.changed() == str(tmp_path / "missing")


def test_what_was_missing_with_its_directories_comes(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such" / "folder" / "file"
    found = standing(path)
    assert found.changed() is None
    path.parent.mkdir(parents=True)
    assert found.changed() is None
    path.write_text("")
    assert found.changed() == str(path)


def test_what_was_missing_behind_a_link_to_nowhere_comes(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(elsewhere)
    path = inside / "link" / "below" / "file"
    found = standing(path)
    assert found.changed() is None
    (elsewhere / "below").mkdir(parents=True)
    (elsewhere / "below" / "file").write_text("")
    assert found.changed() == str(path)
