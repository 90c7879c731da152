"""A cache of small files, shared by all projects of a user.

Several processes may write the same file at once: each writes a draft and renames it. A file is
used only if no other user could have written it and its digest is right. Any error counts as a
miss.
"""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from blake3 import blake3

_SUFFIX = ".kept"
_DIGEST = 32
_MAX_PER_NAME = 3
"""Files of one name that are kept: machines that share a home directory have their own."""
_MAX_AGE = 30 * 24 * 3600
"""Seconds after which a file is removed."""


def read_cached(directory: Path, name: str, key: str) -> bytes | None:
    """The cached data of this name and key, or None."""
    with suppress(OSError):
        # Do not follow a link, and do not wait for a pipe.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(_cache_path(directory, name, key), flags), "rb") as file:
            status = os.fstat(file.fileno())
            others = stat.S_IWGRP | stat.S_IWOTH
            if not stat.S_ISREG(status.st_mode) or status.st_mode & others:
                return None
            if status.st_uid != os.geteuid():
                return None
            data = file.read()
        if data[:_DIGEST] == blake3(data[_DIGEST:]).digest():
            return data[_DIGEST:]
    return None


def write_cached(directory: Path, name: str, key: str, data: bytes) -> None:
    """Write the data if possible, and remove files that it replaces."""
    path = _cache_path(directory, name, key)
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    try:
        with open(_create_draft(draft), "wb") as file:
            file.write(blake3(data).digest())
            file.write(data)
        draft.rename(path)
        _remove_old(directory, name)
    except OSError:
        with suppress(OSError):
            draft.unlink()


def _cache_path(directory: Path, name: str, key: str) -> Path:
    return directory / f"{name}-{blake3(key.encode()).hexdigest(length=10)}{_SUFFIX}"


def _create_draft(draft: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(draft, flags, 0o600)
    except FileNotFoundError:
        draft.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(draft, flags, 0o600)


def _remove_old(directory: Path, name: str) -> None:
    """Remove old files with the names of this module only."""
    made = {file: file.lstat().st_mtime for file in directory.glob(f"*{_SUFFIX}*")}
    same_name = [file for file in made if _name(file) == name and file.suffix == _SUFFIX]
    replaced = sorted(same_name, key=made.__getitem__, reverse=True)[_MAX_PER_NAME:]
    expired = [file for file, at in made.items() if at < time.time() - _MAX_AGE]
    for file in {*replaced, *expired}:
        with suppress(OSError):
            file.unlink()


def _name(file: Path) -> str:
    return file.name.rpartition("-")[0]
