"""A snapshot of the files that a program opened or looked at, to detect later changes.

It is checked before each child of the program starts, so it compares the metadata of a few hundred
files and never reads them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec.msgpack import decode, encode

from clew.safe_path import KERNEL_DIRECTORIES
from clew.witness.syscalls.trace_format import OPEN, AnyRecord, FileStat, Look, Open
from clew.witness.syscalls.version_tracker import file_stat_of

_AS_LINK = 1
_State = tuple[int, int, int]
_Signature = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of the last change of the content and of the metadata."""
_Dumped = tuple[
    list[tuple[bytes, bool, _Signature]],
    list[tuple[bytes, list[bytes]]],
    list[tuple[bytes, _State | None]],
]


class InputSnapshot:
    """The metadata of every path that was opened or looked at."""

    def __init__(self) -> None:
        self._there: dict[tuple[bytes, bool], _Signature] = {}
        self._absent: dict[bytes, list[bytes]] = {}
        self._parents: dict[bytes, tuple[int, int, int] | None] = {}

    @classmethod
    def from_trace(cls, trace: Iterable[AnyRecord]) -> InputSnapshot:
        """The snapshot of what this trace opened and looked at."""
        found = cls()
        for record in trace:
            if isinstance(record, Open) and record.image == 0 and record.file_stat:
                found._seen(record.real or record.path, record.file_stat, follow=True)
            elif isinstance(record, Look):
                found._looked(record)
        return found

    @classmethod
    def of_paths(cls, paths: Iterable[bytes]) -> InputSnapshot:
        """The snapshot of these paths as they are now."""
        found = cls()
        for path in paths:
            try:
                for follow in (True, False):
                    file_stat = file_stat_of(os.stat(path, follow_symlinks=follow))
                    found._seen(path, file_stat, follow=follow)
            except OSError:
                found._missing(path)
        return found

    def dump(self) -> bytes:
        """The snapshot as bytes that `load` reads."""
        there = [(path, follow, signature) for (path, follow), signature in self._there.items()]
        return encode((there, list(self._absent.items()), list(self._parents.items())))

    @classmethod
    def load(cls, data: bytes) -> InputSnapshot:
        there, absent, parents = decode(data, type=_Dumped)
        found = cls()
        found._there = {(path, follow): signature for path, follow, signature in there}
        found._absent = dict(absent)
        found._parents = dict(parents)
        return found

    def changed(self) -> str | None:
        """The first path that changed; None if none did."""
        for (path, follow), signature in self._there.items():
            try:
                now = os.stat(path) if follow else os.lstat(path)
            except OSError:
                return os.fsdecode(path)
            if signature != (
                now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns
            ):  # fmt: skip
                return os.fsdecode(path)
        for parent, names in self._absent.items():
            if _state(parent) == self._parents[parent] is not None:
                continue  # no name was added or removed there
            for path in names:
                if os.path.lexists(path):
                    return os.fsdecode(path)
        return None

    def _looked(self, record: Look) -> None:
        if record.error:
            self._missing(record.path)
        elif record.file_stat:
            linked = record.kind != OPEN and bool(record.flags & _AS_LINK)
            self._seen(record.path, record.file_stat, follow=not linked)

    def _missing(self, path: bytes) -> None:
        if path.startswith(b"/") and not (path + b"/").startswith(KERNEL_DIRECTORIES):
            parent = os.path.dirname(path)
            while parent != b"/" and not os.path.lexists(parent):
                parent = os.path.dirname(parent)  # as long as the parent is unchanged, so is this
            if parent not in self._parents:
                self._parents[parent] = _state(parent)
            self._absent.setdefault(parent, []).append(path)

    def _seen(self, path: bytes, file_stat: FileStat, *, follow: bool) -> None:
        if path.startswith(b"/") and not (path + b"/").startswith(KERNEL_DIRECTORIES):
            self._there[path, follow] = file_stat.without_mode


def _state(parent: bytes) -> tuple[int, int, int] | None:
    try:
        now = os.stat(parent)
    except OSError:
        return None
    return now.st_ino, now.st_mtime_ns, now.st_ctime_ns
