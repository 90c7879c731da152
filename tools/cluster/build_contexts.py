"""The build context of an image: its Containerfile and the files that it copies into the image.

The archive of an image is named by their digest, so it is known without a build whether the archive
is current. Packages that a build fetches are pinned in those files.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tools.cluster.progress import ClusterError


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
