"""The archives of images, which all working trees on this machine share.

An archive is named by the digest of its build context: the Containerfile and the files that it
copies into the image, in which packages are pinned. So it is known without a build whether the
archive is current. One tree may delete old archives while another is about to import one: so
looking an archive up also renews its time, and one process at a time looks up or deletes.
"""

import hashlib
import re
import time
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from tools.cluster.binaries import cache_directory, locked
from tools.cluster.commands import ClusterError


def context_digest(file: Path, context: Path, *more: str) -> str:
    """The digest of all that determines the image; `more` are the options of the build."""
    found = hashlib.sha256(repr((file.read_bytes(), more)).encode())
    for path in sorted(_copied_files(file, context)):
        relative, mode = path.relative_to(context), path.lstat().st_mode & 0o777
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        found.update(repr((str(relative), mode, path.is_symlink(), digest)).encode())
    return found.hexdigest()[:12]


def _copied_files(file: Path, context: Path) -> Iterator[Path]:
    ignored = _ignored(context)
    for line in re.sub(r"\\\n", " ", file.read_text()).splitlines():
        command, *words = line.split() or [""]
        if command == "ADD" or (command == "COPY" and "[" in line):
            raise ClusterError(f"{file}: which files are these? {line}")
        if command != "COPY" or any(word.startswith("--from=") for word in words):
            continue
        for source in [word for word in words if not word.startswith("--")][:-1]:
            place = context / source
            if not place.exists():
                raise ClusterError(f"{file}: there is no {source}")
            yield from _files(place, context, ignored) if place.is_dir() else [place]


def _files(folder: Path, context: Path, ignored: tuple[str, ...]) -> Iterator[Path]:
    for path in folder.iterdir():
        relative = PurePosixPath(path.relative_to(context))
        if any(relative.match(pattern) for pattern in ignored):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _files(path, context, ignored)
        else:
            yield path


def _ignored(context: Path) -> tuple[str, ...]:
    """The patterns of .dockerignore; negated ones are not supported."""
    lines = (context / ".dockerignore").read_text().splitlines()
    found = tuple(line.strip() for line in lines if line.strip() and line[0] != "#")
    if any(pattern[0] == "!" for pattern in found):
        raise ClusterError(".dockerignore: patterns with ! are not supported here")
    return found


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
