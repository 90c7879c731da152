"""The archives of images, which all trees of this machine share.

One tree may throw away what is old while another is about to import it: so whoever finds an archive
makes it young again, and one process at a time looks or throws away.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from tools.cluster.binaries import cache, locked

OLD = 3600.0  # seconds: longer than it takes from finding one to importing it


def store() -> Path:
    return cache().parent / "images"


def place(name: str, made_of: str) -> Path:
    return store() / f"{name.rpartition('/')[2].replace(':', '-')}-{made_of}.tar"


def found(archive: Path) -> bool:
    """Whether it is there, and then it stays for a while."""
    with locked(store() / "archives.lock"):
        if there := archive.exists():
            archive.touch()
    return there


def forget_but(kept: Collection[Path]) -> None:
    """Throw away what is old, unless it is one of these."""
    with locked(store() / "archives.lock"):
        for archive in store().glob("*.tar"):
            if archive not in kept and time.time() - archive.stat().st_mtime > OLD:
                archive.unlink()
