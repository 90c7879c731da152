"""Small files that can be made again, kept for all projects of a user.

Whoever finds none makes its own, so many may make the same one at once: each writes beside the
place and renames, and nobody ever sees half of one. A file is believed only if this user alone
could have written it and its bytes are those that were written; whatever else is found there, or
goes wrong, comes to the same as finding nothing.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from blake3 import blake3

_SUFFIX = ".kept"
_DIGEST = 32
_ALIKE = 3
"""How many of one name stay: machines and containers that share a home have each their own."""
_SECONDS = 30 * 24 * 3600
"""Older ones go: their Python, or the program that understood them, may be long gone."""


def take(directory: Path, name: str, key: str) -> bytes | None:
    """What was kept under this name for this key."""
    with suppress(OSError):
        # Neither a link nor a pipe that nobody writes to may lead or hold us.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(_place(directory, name, key), flags), "rb") as file:
            found = os.fstat(file.fileno())
            others = stat.S_IWGRP | stat.S_IWOTH
            if not stat.S_ISREG(found.st_mode) or found.st_mode & others:
                return None
            if found.st_uid != os.geteuid():
                return None
            data = file.read()
        if data[:_DIGEST] == blake3(data[_DIGEST:]).digest():
            return data[_DIGEST:]
    return None


def keep(directory: Path, name: str, key: str, data: bytes) -> None:
    """Keep it, if that can be done, and let go of those it replaces."""
    place = _place(directory, name, key)
    draft = place.with_name(f"{place.name}.{os.urandom(8).hex()}")
    try:
        with open(_created(draft), "wb") as file:
            file.write(blake3(data).digest())
            file.write(data)
        draft.rename(place)
        _let_go(directory, name)
    except OSError:
        with suppress(OSError):
            draft.unlink()


def _place(directory: Path, name: str, key: str) -> Path:
    return directory / f"{name}-{blake3(key.encode()).hexdigest(length=10)}{_SUFFIX}"


def _created(draft: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(draft, flags, 0o600)
    except FileNotFoundError:
        draft.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(draft, flags, 0o600)


def _let_go(directory: Path, name: str) -> None:
    """Only files with names as they are given here: who knows what else lies there."""
    made = {file: file.lstat().st_mtime for file in directory.glob(f"*{_SUFFIX}*")}
    alike = [file for file in made if _name(file) == name and file.suffix == _SUFFIX]
    replaced = sorted(alike, key=made.__getitem__, reverse=True)[_ALIKE:]
    outlived = [file for file, at in made.items() if at < time.time() - _SECONDS]
    for file in {*replaced, *outlived}:
        with suppress(OSError):
            file.unlink()


def _name(file: Path) -> str:
    return file.name.rpartition("-")[0]
