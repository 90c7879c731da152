"""The folder that a Dockerfile is built in: the Dockerfile, and beside it what it copies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from clew.replay.dockerfiles import FILES, dockerfile, place
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
    (folder / FILES).mkdir(parents=True)
    (folder / "Dockerfile").write_text(dockerfile(what, needs), encoding="utf-8")
    filled: list[tuple[Path, Entry, int]] = []
    for path, entry in sorted(needs.copied.items()):
        target = folder / os.fsdecode(place(path))
        mode = what.owned(path, entry)[2]
        target.parent.mkdir(parents=True, exist_ok=True)
        _put(target, entry, mode, restore)
        if entry.kind == "folder":
            filled.append((target, entry, mode))
    for target, entry, mode in reversed(filled):
        # last, from the innermost: filling a folder changes its time
        os.utime(target, ns=(entry.mtime, entry.mtime))
        target.chmod(mode | 0o700)


def _put(target: Path, entry: Entry, mode: int, restore: Restore) -> None:
    if entry.kind == "folder":
        target.mkdir(exist_ok=True)
    elif entry.kind == "link":
        target.symlink_to(os.fsdecode(entry.target))
    elif entry.kind == "stub":
        with open(target, "xb") as file:
            file.truncate(entry.size)
        target.chmod(mode)
        os.utime(target, ns=(entry.mtime, entry.mtime))
    else:
        restore(entry.digest, target, mode=mode, mtime=entry.mtime, sync=False)
