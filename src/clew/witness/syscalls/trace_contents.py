"""What the conversion of a trace asks about the content of files.

`ContentCapture` answers for files of this machine, which it stores. `GivenContents` answers for
files that are out of reach, such as those of a container elsewhere.
"""

import os
from collections.abc import Iterable, Mapping
from errno import ENOENT
from typing import Protocol

from msgspec import Struct

from clew.store import Stored
from clew.witness.syscalls.content_capture import KnownContent
from clew.witness.syscalls.trace_format import ContentKey, FileStat


class FileSystem(Protocol):
    """The files of a command, as its paths name them."""

    def lstat(self, path: bytes) -> os.stat_result: ...

    def readlink(self, path: bytes) -> bytes: ...


class TraceContents(Protocol):
    """What is known about the content of files that a trace mentions."""

    @property
    def files(self) -> FileSystem: ...

    def known(self, file_stat: FileStat) -> KnownContent | None:
        """The content of this state, if it is known for certain."""

    def why_missing(self, file_stat: FileStat) -> str:
        """Why it is not known; empty where that is no gap."""

    def listing(self, file_stat: FileStat) -> tuple[list[bytes], bool] | None:
        """The names in a directory soon after it was listed in this state, and whether it was still
        in that state."""

    def store_all(self, data: list[bytes]) -> list[str]:
        """Store data that is not a file; the digests, or empty strings if it is not stored."""

    def store_final(self, paths: Iterable[bytes]) -> None:
        """Store the files at these paths as the execution leaves them."""

    def final(self, path: bytes) -> tuple[KnownContent, os.stat_result] | str:
        """The content of the file at this path, or why there is none."""


class GivenContent(Struct, frozen=True):
    """The content of a file in one state."""

    file_stat: FileStat
    stored: Stored
    kept: bool


class _NoFiles:
    """Every file is out of reach."""

    def lstat(self, path: bytes) -> os.stat_result:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)

    def readlink(self, path: bytes) -> bytes:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)


class GivenContents:
    """Files that are out of reach, with the content of some. That of the others is no gap: where it
    was not given, the record does not have it."""

    files = _NoFiles()

    def __init__(self, given: Mapping[bytes, GivenContent]) -> None:
        """`given`: by path, as the command saw it."""
        self._by_path = given
        self._by_state: dict[ContentKey, KnownContent] = {
            one.file_stat.content_key: KnownContent(one.stored, one.kept) for one in given.values()
        }

    def known(self, file_stat: FileStat) -> KnownContent | None:
        return self._by_state.get(file_stat.content_key)

    def why_missing(self, file_stat: FileStat) -> str:
        return ""

    def listing(self, file_stat: FileStat) -> tuple[list[bytes], bool] | None:
        return None

    def store_all(self, data: list[bytes]) -> list[str]:
        return [""] * len(data)

    def store_final(self, paths: Iterable[bytes]) -> None:
        """They cannot be stored."""

    def final(self, path: bytes) -> tuple[KnownContent, os.stat_result] | str:
        one = self._by_path.get(path)
        if one is None:
            return "gone"
        return KnownContent(one.stored, one.kept), _as_result(one.file_stat)


def _as_result(state: FileStat) -> os.stat_result:
    seconds = state.mtime // 10**9
    fields = (state.mode, state.ino, state.dev, 1, 0, 0, state.size, seconds, seconds, seconds)
    exact = {"st_mtime_ns": state.mtime, "st_ctime_ns": state.ctime}
    return os.stat_result(fields, exact)
