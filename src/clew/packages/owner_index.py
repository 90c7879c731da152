"""An index from paths to the packages that own them, kept in one small file.

Package managers' own records are large and slow to read; this is what is left of them when
only "whose is this path" is asked: 12 bytes a path. A path is known by 64 bits of its
BLAKE3 hash; two among a million differing paths meet once in forty million machines. The
directories that hold owned files are in it, too: most files lie where nobody owns any, and a
directory is asked about once.

The file is a cache, one for all projects of a user (`clew.packages.user_cache`): it carries the
state of the records it was made from, and is found by it.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from clew.packages import user_cache

_FORMAT = 3
_DIRECTORY = 0xFFFF_FFFF
"""In place of an owner: a directory that holds owned files."""
_KEY, _OWNER = 8, 4
_SETTLED = 2_000_000_000
"""Records that changed less than these nanoseconds ago may change again within one tick of the
file system's clock, unseen: what was made from them is used, but not kept."""


_last: dict[tuple[Path, str], tuple[str, Index]] = {}
"""What was read or made last, by its place and name, with the state of the records."""


class Package(NamedTuple):
    """One installed package, and whether the user asked for it (None: nobody knows)."""

    purl: str
    requested: bool | None


Owned = Iterable[tuple[Package, Iterable[bytes]]]
"""What a package manager's reader gives: each package with the paths it owns."""


class Index:
    """Answers "whose is this path" from two arrays sorted by the paths' hashes."""

    def __init__(
        self,
        packages: list[Package],
        keys: array[int] | memoryview[int],
        owners: array[int] | memoryview[int],
    ) -> None:
        self.packages = packages
        self._keys = keys
        self._owners = owners
        self._directories: dict[bytes, bool] = {}

    def owner(self, path: bytes) -> Package | None:
        directory = path.rpartition(b"/")[0]
        holds = self._directories.get(directory)
        if holds is None:
            holds = self._directories[directory] = self._number(directory) is not None
        number = self._number(path) if holds else None
        return self.packages[number] if number is not None and number < len(self.packages) else None

    def _number(self, path: bytes) -> int | None:
        key = _key(path)
        at = bisect_left(self._keys, key)
        return self._owners[at] if at < len(self._keys) and self._keys[at] == key else None

    @classmethod
    def build(cls, owned: Owned) -> Index:
        """Where two packages claim one path, the first is believed."""
        packages: list[Package] = []
        owner_of: dict[int, int] = {}
        directories: set[bytes] = set()
        for number, (package, paths) in enumerate(owned):
            packages.append(package)
            for path in paths:
                owner_of.setdefault(_key(path), number)
                directories.add(path.rpartition(b"/")[0])
        for directory in directories:
            owner_of.setdefault(_key(directory), _DIRECTORY)
        keys = array("Q", sorted(owner_of))
        return cls(packages, keys, array("I", map(owner_of.__getitem__, keys)))

    def to_bytes(self, state: str) -> bytes:
        head = json.dumps([_FORMAT, sys.byteorder, state, len(self._keys), self.packages])
        return head.encode() + b"\n" + self._keys.tobytes() + self._owners.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, state: str) -> Index | None:
        """None unless these are the bytes of an index made from the same state."""
        end = data.find(b"\n")
        try:
            version, order, made_from, count, packages = json.loads(data[:end])
        except ValueError:
            return None
        body = memoryview(data)[end + 1 :]
        size = _KEY * count if isinstance(count, int) else 0
        if end < 0 or (version, order, made_from) != (_FORMAT, sys.byteorder, state):
            return None
        if len(body) != size + _OWNER * count:
            return None
        keys, owners = body[:size].cast("Q"), body[size:].cast("I")
        return cls([Package(*package) for package in packages], keys, owners)


def index(
    cache: Path | None, name: str, sources: Iterable[Path], read: Callable[[], Owned]
) -> Index:
    """The index of these records: the kept one when they have not changed since, else a new one."""
    sources = list(sources)
    state, newest = _state(sources)
    kept = _read(cache, name, state) if cache else None
    if kept is not None:
        return kept
    made = Index.build(read())
    if cache and _now() - newest > _SETTLED and _state(sources)[0] == state:
        _last[cache, name] = state, made
        user_cache.keep(cache, name, _found_by(state), made.to_bytes(state))
    return made


def _read(cache: Path, name: str, state: str) -> Index | None:
    """The kept one. It is the same for all who ask: a run has one worker after the other, and
    each of them would have megabytes of its own."""
    before, shared = _last.get((cache, name), (None, None))
    if before != state or shared is None:
        data = user_cache.take(cache, name, _found_by(state))
        shared = None if data is None else Index.from_bytes(data, state)
    if shared is None:
        return None
    _last[cache, name] = state, shared
    return Index(shared.packages, shared._keys, shared._owners)


def _found_by(state: str) -> str:
    """Programs of other formats, and machines of another kind, have files of their own."""
    return f"{_FORMAT} {sys.byteorder}\n{state}"


def _key(path: bytes) -> int:
    return int.from_bytes(blake3(path).digest(length=8), sys.byteorder)


def _now() -> int:
    import time

    return time.time_ns()


def _state(sources: Iterable[Path]) -> tuple[str, int]:
    """What the records look like from outside, and when the last of them changed."""
    seen: list[str] = []
    newest = 0
    for source in sources:
        try:
            stat = os.stat(source)
        except OSError:
            seen.append(f"{source} -")
            continue
        newest = max(newest, stat.st_mtime_ns, stat.st_ctime_ns)
        times = f"{stat.st_mtime_ns} {stat.st_ctime_ns}"
        seen.append(f"{source} {stat.st_dev} {stat.st_ino} {stat.st_size} {times}")
    return "\n".join(seen).encode(errors="surrogateescape").decode(errors="replace"), newest
