"""Trees that hostile commands leave can be removed."""

import os
from pathlib import Path

from clew.tree_removal import remove_tree


def test_directories_deeper_than_any_path_are_removed(tmp_path: Path) -> None:
    """A hostile command leaves them, and nobody could repeat or recover beside them."""
    place = tmp_path / "place"
    place.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "file").touch()
    (place / "link").symlink_to(outside)
    at = os.open(place, os.O_RDONLY)
    for _ in range(1500):  # more than Python's limit of recursion, and than a path's 4096 bytes
        os.mkdir("deeper", dir_fd=at)
        Path(f"/proc/self/fd/{at}/file\udcff").touch()
        inner = os.open("deeper", os.O_RDONLY, dir_fd=at)
        os.fchmod(at, 0o500)
        os.close(at)
        at = inner
    os.close(at)
    place.chmod(0o700)
    remove_tree(place)
    assert not place.exists()
    assert (outside / "file").exists()
    assert outside.stat().st_mode & 0o777 == 0o755
