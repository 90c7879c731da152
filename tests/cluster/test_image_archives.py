"""Trees of one machine share the archives of images: none loses what it is about to import."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tools.cluster import image_archives
from tools.cluster.binaries import locked

SOURCE = Path(__file__).parents[2]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Archives that nobody has used for two hours."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    image_archives.archive_directory().mkdir(parents=True)
    found = [image_archives.archive_path(f"docker.io/clew/clew:{n}", "abc") for n in range(3)]
    for archive in found:
        archive.touch()
        os.utime(archive, (time.time() - 7200,) * 2)
    return found


def test_old_unused_archives_are_removed(made: list[Path]) -> None:
    mine, found_by_another, old = made
    assert image_archives.touch_existing(found_by_another)
    image_archives.delete_old([mine])
    assert mine.exists() and found_by_another.exists() and not old.exists()
    assert not image_archives.touch_existing(old)


def test_archives_are_not_removed_while_another_process_uses_them(made: list[Path]) -> None:
    forgets = "from tools.cluster import image_archives; image_archives.delete_old([])"
    with locked(image_archives.archive_directory() / "archives.lock"):
        both = [
            subprocess.Popen([sys.executable, "-c", forgets], cwd=SOURCE, stderr=subprocess.PIPE)
            for _ in range(2)
        ]
        for process in both:
            assert process.stderr is not None
            assert b"waiting" in process.stderr.readline()
        assert all(archive.exists() for archive in made)
    for process in both:
        assert process.communicate()[1] == b""
        assert process.returncode == 0
    assert not any(archive.exists() for archive in made)
