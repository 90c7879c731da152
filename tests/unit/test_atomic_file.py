"""A file is replaced whole or not at all."""

import os
from pathlib import Path

import pytest

from clew.atomic_file import write_atomically


def test_it_is_replaced_with_a_new_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    write_atomically(path, b"new", sync=True)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path / "directory", b"new")
    assert os.listdir(tmp_path) == ["directory"]
