"""Remove directory trees that untrusted commands left."""

import contextlib
import os
import stat
from pathlib import Path

_MOVED = f".{os.urandom(8).hex()}-"
"""Prefix of directories that are being removed."""


def remove_tree(path: Path) -> None:
    """Remove a directory, whatever its permissions are; of a symbolic link, only the link.

    A command may have left directories deeper than the longest path. So each directory is moved to
    the top before it is emptied.
    """
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            path.unlink()
            return
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _remove_contents(top)
        finally:
            os.close(top)
        path.rmdir()


def _remove_contents(top: int) -> None:
    waiting = _remove_files(top)
    moved = 0
    while waiting:
        name = waiting.pop()
        with contextlib.suppress(OSError):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            directory = os.open(name, flags, dir_fd=top)
            try:
                for inner in _remove_files(directory):
                    moved += 1
                    to = f"{_MOVED}{moved}"
                    with contextlib.suppress(OSError):
                        os.rename(inner, to, src_dir_fd=directory, dst_dir_fd=top)
                        waiting.append(to)
            finally:
                os.close(directory)
            os.rmdir(name, dir_fd=top)


def _remove_files(directory: int) -> list[str]:
    """Remove all files, make the directories accessible, and return their names."""
    directories: list[str] = []
    with os.scandir(directory) as listed:
        entries = list(listed)
    for entry in entries:
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.name, 0o700, dir_fd=directory)
                directories.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=directory)
    return directories
