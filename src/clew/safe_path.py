# Paths are bytes here, which pathlib does not take:
# ruff: noqa: PTH102
"""Join paths from a record, an archive or a server to a directory on disk, and never leave it.

A record may come from anyone, so its paths are untrusted. All code that writes files from one gets
their places from a `SafeDirectory`. It rejects names with `..`, and names that are not a single
component. It makes the parent directories itself: a parent that is a symbolic link is an error, no
matter who made it. So a record cannot write a link `a -> /etc` and then the file `a/passwd`. The
last part of a path is not checked: callers write it with calls that do not follow links
(a rename, `O_EXCL`, `symlink`).

Some names make a directory a project or a repository, whose settings other programs obey.
`escape_names` renames such files where a person works on them.

`open_parent` is for a directory that others change at the same time: a sandbox, seen from outside.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from clew.errors import Damaged

KERNEL_DIRECTORIES = (b"/proc/", b"/sys/", b"/dev/")
"""File systems of the kernel. Reading their files fails, never ends, or changes something, so they
are never stored or compared."""

_LONGEST = 4096
"""Bytes of the longest path that the kernel accepts."""
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_DEEPEST = 256
"""Directories: what is much deeper cannot be removed by recursion."""


_OBEYED = re.compile(rb"_*\.(clew|clew-checkout|git|hg)", re.IGNORECASE)


def escape_names(path: bytes) -> bytes:
    """The path with `_` before names that make a directory a project of Clew, or a repository.

    An untrusted `sub/.clew` would be taken for a project of the user: its records for records made
    here. The settings of a `.git` or `.hg` name programs, which any `git status` runs.
    """
    return b"/".join(b"_" + name if _OBEYED.fullmatch(name) else name for name in path.split(b"/"))


def unescape_names(path: bytes) -> bytes:
    """The inverse of `escape_names`."""
    return b"/".join(
        name[1:] if name[:1] == b"_" and _OBEYED.fullmatch(name) else name
        for name in path.split(b"/")
    )


def check_escaped(path: bytes) -> None:
    """Raise Damaged if `escape_names` cannot have made this path."""
    if any(name[:1] == b"." and _OBEYED.fullmatch(name) for name in path.split(b"/")):
        shown = path[:200].decode("utf-8", "replace")
        raise Damaged(
            f"{shown!r} would be a project or a repository", hint="do not trust the server"
        )


def check_relative(path: bytes) -> None:
    """Raise Damaged unless `path` is relative and made of plain names."""
    parts = path.split(b"/")
    too_long = len(path) > _LONGEST or len(parts) > _DEEPEST
    if too_long or b"\0" in path or not {b"", b".", b".."}.isdisjoint(parts):
        shown = path[:200].decode("utf-8", "replace")
        raise Damaged(
            f"{shown!r} is not a valid relative path",
            hint="the record or the server names a path outside the directory: do not trust it",
        )


class SafeDirectory:
    """A directory that files of a record are written below. The directory itself must exist."""

    def __init__(self, root: bytes | str | os.PathLike[str]) -> None:
        self._root = os.fsencode(root)
        self._made = {b""}  # directories below the root that are known to be real

    def join(self, path: bytes) -> bytes:
        """The location of `path`, relative to the directory, on disk; its parent directories are
        made."""
        check_relative(path)
        self._make(os.path.dirname(path))
        return os.path.join(self._root, path)

    def make_directory(self, path: bytes) -> bytes:
        """As `join`, of a directory, which is made if it is not there."""
        check_relative(path)
        self._make(path)
        return os.path.join(self._root, path)

    def _make(self, path: bytes) -> None:
        lacking = []
        while path not in self._made:
            lacking.append(path)
            path = os.path.dirname(path)
        for directory in reversed(lacking):
            self._make_one(directory)
            self._made.add(directory)

    def _make_one(self, path: bytes) -> None:
        place = os.path.join(self._root, path)
        try:
            os.mkdir(place)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                shown = path[:200].decode("utf-8", "replace")
                raise Damaged(
                    f"{shown!r} is not a directory, and something is to be written below it",
                    hint="the record or the server writes through a link: do not trust it",
                ) from None


@contextmanager
def open_directory(root: bytes, path: bytes) -> Iterator[int]:
    """A descriptor of a directory below `root`, where other processes may be at work: no link on
    the way is followed, even if one is put there at this moment. An OSError where one is. With an
    empty path, `root` itself."""
    if path:
        check_relative(path)
    descriptor = os.open(root, _DIRECTORY)
    try:
        for name in path.split(b"/") if path else ():
            inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_parent(root: bytes, path: bytes) -> Iterator[tuple[int, bytes]]:
    """As `open_directory`, of the directory that holds `path`; and the name it has there."""
    check_relative(path)
    directory, _, name = path.rpartition(b"/")
    with open_directory(root, directory) as descriptor:
        yield descriptor, name
