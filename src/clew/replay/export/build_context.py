# Paths are bytes here, which pathlib does not take:
# ruff: noqa: PTH101, PTH211
"""Write a Docker build context: the Dockerfile and the files that it copies."""

import os
from pathlib import Path
from typing import Protocol

from clew.replay.export.dockerfile import FILES, context_path, dockerfile
from clew.replay.export.file_sources import find_sources
from clew.replay.export.portable_execution import PortableExecution
from clew.replay.sandbox.initial_files import Entry
from clew.safe_path import SafeDirectory


class Restore(Protocol):
    """Writes a content to a new file."""

    def __call__(
        self, digest: str, to: bytes, /, *, mode: int | None, mtime: int | None, sync: bool
    ) -> None: ...


def write_context(execution: PortableExecution, directory: Path, *, restore: Restore) -> None:
    """Fill a new directory."""
    sources = find_sources(execution)
    (directory / FILES).mkdir(parents=True)
    (directory / "Dockerfile").write_text(dockerfile(execution, sources), encoding="utf-8")
    places = SafeDirectory(directory)
    filled: list[tuple[bytes, Entry, int]] = []
    for path, entry in sorted(sources.copied.items()):
        mode = execution.ownership(path, entry)[2]
        if entry.kind == "directory":
            filled.append((places.make_directory(context_path(path)), entry, mode))
        else:
            _write_entry(places.join(context_path(path)), entry, mode, restore)
    for target, entry, mode in reversed(filled):
        # last, from the innermost: filling a directory changes its time
        os.utime(target, ns=(entry.mtime, entry.mtime))
        os.chmod(target, (mode & 0o1777) | 0o700)


def _write_entry(target: bytes, entry: Entry, mode: int, restore: Restore) -> None:
    if entry.kind == "link":
        os.symlink(entry.target, target)
    elif entry.kind == "stub":
        with open(target, "xb") as file:
            file.truncate(entry.size)
            os.fchmod(file.fileno(), mode)
            os.utime(file.fileno(), ns=(entry.mtime, entry.mtime))
    else:
        restore(entry.digest, target, mode=mode, mtime=entry.mtime, sync=False)
