"""The folder that a Dockerfile is built in: the Dockerfile, and beside it what it copies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from clew.replay.dockerfiles import FILES, dockerfile
from clew.replay.ingredients import ingredients
from clew.replay.portable import Portable
from clew.replay.scenery import Entry


class Restore(Protocol):
    """Writes a content to a new file."""

    def __call__(
        self, digest: str, to: Path, /, *, mode: int | None, mtime: int | None, sync: bool
    ) -> None: ...


def write_context(what: Portable, folder: Path, *, restore: Restore) -> None:
    """Fill a new folder."""
    needs = ingredients(what)
    root = os.fsencode(folder / FILES)
    os.makedirs(root)
    (folder / "Dockerfile").write_text(dockerfile(what, needs), encoding="utf-8")
    above: dict[bytes, Entry] = {}
    for path, entry in sorted(needs.copied.items()):
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        _put(Path(os.fsdecode(root + path)), entry, what.owned(path, entry)[2], restore)
        if entry.kind == "folder":
            above[path] = entry
    for path, entry in sorted(above.items(), reverse=True):
        # last, from the innermost: filling a folder changes its time
        place = Path(os.fsdecode(root + path))
        os.utime(place, ns=(entry.mtime, entry.mtime))
        place.chmod(what.owned(path, entry)[2] | 0o700)


def _put(place: Path, entry: Entry, mode: int, restore: Restore) -> None:
    if entry.kind == "folder":
        place.mkdir(exist_ok=True)
    elif entry.kind == "link":
        place.symlink_to(os.fsdecode(entry.target))
    elif entry.kind == "stub":
        with open(place, "xb") as file:
            file.truncate(entry.size)
        place.chmod(mode)
        os.utime(place, ns=(entry.mtime, entry.mtime))
    else:
        restore(entry.digest, place, mode=mode, mtime=entry.mtime, sync=False)
