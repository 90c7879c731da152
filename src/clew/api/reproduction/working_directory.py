"""The directory of a reproduction on this machine: its volumes, restored inputs and given values.

Its name says which process uses it, as those of the containers do, and it lists the fresh buckets.
So the next command finds and removes what a killed one left.
"""

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

PREFIX = "clew-reproduce-"
_OURS = re.compile(rf"{PREFIX}(\d+)-([0-9a-f]{{8}})(?:-\d+)?")
_BUCKETS, _FILES = "buckets", "files"


def make_name() -> tuple[str, str]:
    """Returns the directory's name, which is also the prefix of container names, and its random
    part, which is also part of the names of fresh buckets."""
    word = secrets.token_hex(4)
    return f"{PREFIX}{os.getpid()}-{word}", word


def is_abandoned(name: str) -> bool:
    """Whether a directory or a container has a name of ours, and its process is gone."""
    match = _OURS.fullmatch(name)
    return match is not None and not Path("/proc", match[1]).exists()


class WorkingDirectory:
    """Use it in a `with`: it is removed at the end. Only this user can enter it. Files of root,
    which a container made, stay where this user is not root."""

    def __init__(self, name: str, buckets: Iterable[str], say: Callable[[str], None]) -> None:
        """`buckets`: the fresh ones."""
        self._path = Path(tempfile.gettempdir(), name)
        self._buckets = list(buckets)
        self._say = say
        self._is_kept = False
        self.files = self._path / _FILES

    def __enter__(self) -> Self:
        self._path.mkdir(mode=0o700)
        (self._path / _BUCKETS).write_text("\n".join(self._buckets))
        self.files.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        _remove(self._path, self._say, keep_list=self._is_kept)

    def keep_list(self, text: str) -> None:
        """A bucket could not be deleted: the next command tries again."""
        self._say(text)
        self._is_kept = True


def remove_abandoned(
    remove_buckets: Callable[[list[str]], list[str]], say: Callable[[str], None]
) -> None:
    """Remove the directories of this user's commands that were killed, and their buckets.
    `remove_buckets` returns what to say of those that are still there."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if is_abandoned(path.name) and _is_ours(path):
            left = remove_buckets(_list_buckets(path))
            for text in left:
                say(text)
            _remove(path, say, keep_list=bool(left))


def _is_ours(path: Path) -> bool:
    """Others may make files in the same place."""
    with suppress(OSError):
        found = path.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return False


def _list_buckets(path: Path) -> list[str]:
    with suppress(OSError):
        return (path / _BUCKETS).read_text().split()
    return []


def _remove(path: Path, say: Callable[[str], None], *, keep_list: bool) -> None:
    shutil.rmtree(path / _FILES if keep_list else path, ignore_errors=True)
    if (path / _FILES).exists():
        say(f"{path} has files of other users: remove it")
