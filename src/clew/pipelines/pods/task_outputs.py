"""The files that a task left in the directory that it shares with the helper of its Pod.

The helper has rights that the task has not, and the task may have left links to anywhere: to the
helper's own variables under /proc, for example. So the kernel resolves every path with the shared
directory as the root, and what does not lead to a file in it is left out.
"""

import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Struct

from clew.confined_files import Confined


class LeftFile(Struct, frozen=True):
    """A file of an artifact."""

    path: bytes
    """Absolute, with the shared directory as the root."""
    suffix: str
    """How its URL goes on after that of the artifact."""


class TaskOutputs:
    """Use it in a `with`."""

    def __init__(self, share: str) -> None:
        self._root = os.open(share, os.O_PATH | os.O_DIRECTORY)
        self._files = Confined(self._root)
        self.left_out: list[str] = []
        """The paths of what was left out: links that lead elsewhere, sockets, names in no text."""

    def __enter__(self) -> "TaskOutputs":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def list_files(self, artifact: bytes) -> Iterator[LeftFile]:
        """The files of an artifact: one, those of a directory, or none."""
        try:
            found = self._files.stat(artifact)
        except OSError:
            return
        if stat.S_ISREG(found.st_mode):
            yield LeftFile(artifact, "")
        elif stat.S_ISDIR(found.st_mode):
            yield from self._walk(artifact, b"")

    def _walk(self, artifact: bytes, below: bytes) -> Iterator[LeftFile]:
        names, _ = self._files.listdir(artifact + below)
        for name in sorted(names):
            inside = below + b"/" + name
            path = artifact + inside
            if stat.S_ISDIR(self._files.lstat(path).st_mode):
                yield from self._walk(artifact, inside)
            elif self._is_file(path) and _is_text(inside):
                yield LeftFile(path, os.fsdecode(inside))
            else:
                self.left_out.append(path.decode(errors="replace"))

    def stat(self, path: bytes) -> os.stat_result | None:
        """None if there is nothing."""
        try:
            return self._files.stat(path)
        except OSError:
            return None

    def _is_file(self, path: bytes) -> bool:
        try:
            return stat.S_ISREG(self._files.stat(path).st_mode)
        except OSError:
            return False

    def open(self, path: bytes) -> BinaryIO | None:
        """None if there is no file."""
        if not self._is_file(path):
            return None
        return os.fdopen(self._files.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
