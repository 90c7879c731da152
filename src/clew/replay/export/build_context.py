# Paths are bytes here, which pathlib does not take:
# ruff: noqa: PTH101, PTH211
"""The folder that a Dockerfile is built in: the Dockerfile, and beside it what it copies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from clew.replay.export.dockerfile import FILES, dockerfile, place
from clew.replay.export.file_sources import ingredients
from clew.replay.export.portable_execution import Portable
from clew.replay.sandbox.initial_files import Entry
from clew.safe_path import SafeFolder


class Restore(Protocol):
    """Writes a content to a new file."""

    def __call__(
        self, digest: str, to: bytes, /, *, mode: int | None, mtime: int | None, sync: bool
    ) -> None: ...


def write_context(what: Portable, folder: Path, *, restore: Restore) -> None:
    """Fill a new folder."""
    needs = ingredients(what)
    (folder / FILES).mkdir(parents=True)
    (folder / "Dockerfile").write_text(dockerfile(what, needs), encoding="utf-8")
    places = SafeFolder(folder)
    filled: list[tuple[bytes, Entry, int]] = []
    for path, entry in sorted(needs.copied.items()):
        mode = what.owned(path, entry)[2]
        if entry.kind == "folder":
            filled.append((places.make_folder(place(path)), entry, mode))
        else:
            _put(places.join(place(path)), entry, mode, restore)
    for target, entry, mode in reversed(filled):
        # last, from the innermost: filling a folder changes its time
        os.utime(target, ns=(entry.mtime, entry.mtime))
        os.chmod(target, (mode & 0o1777) | 0o700)


def _put(target: bytes, entry: Entry, mode: int, restore: Restore) -> None:
    if entry.kind == "link":
        os.symlink(entry.target, target)
    elif entry.kind == "stub":
        with open(target, "xb") as file:
            file.truncate(entry.size)
            os.fchmod(file.fileno(), mode)
            os.utime(file.fileno(), ns=(entry.mtime, entry.mtime))
    else:
        restore(entry.digest, target, mode=mode, mtime=entry.mtime, sync=False)
