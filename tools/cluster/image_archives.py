"""The archives of images, which all working trees on this machine share.

One tree may delete old archives while another is about to import one: so looking an archive up also
renews its time, and one process at a time looks up or deletes.
"""

import time
from collections.abc import Collection
from pathlib import Path

from tools.cluster.binaries import cache_directory, locked

OLD = 3600.0  # seconds: longer than it takes from finding one to importing it


def archive_directory() -> Path:
    return cache_directory().parent / "images"


def archive_path(name: str, made_of: str) -> Path:
    return archive_directory() / f"{name.rpartition('/')[2].replace(':', '-')}-{made_of}.tar"


def touch_existing(archive: Path) -> bool:
    """Whether it exists; if so, it is not deleted for a while."""
    with locked(archive_directory() / "archives.lock"):
        if there := archive.exists():
            archive.touch()
    return there


def delete_old(kept: Collection[Path]) -> None:
    """Delete old archives, except these."""
    with locked(archive_directory() / "archives.lock"):
        for archive in archive_directory().glob("*.tar"):
            if archive not in kept and time.time() - archive.stat().st_mtime > OLD:
                archive.unlink()
