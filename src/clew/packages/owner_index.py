"""An index from paths to the packages that own them, kept in one small file.

The databases of package managers are large and slow to read; the index has 12 bytes per path: 64
bits of its BLAKE3 hash, and the number of its package. A collision among a million paths happens on
one of forty million machines. Directories with owned files are included, because most files are in
directories without any, and a directory is looked up only once.

The file is a cache for all projects of a user (`clew.packages.user_cache`), keyed by the state of
the databases it was built from.
"""

from __future__ import annotations

import json
import os
import sys
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from clew.packages import user_cache

_FORMAT = 3
_DIRECTORY = 0xFFFF_FFFF
"""Marks a directory that contains owned files, instead of an owner."""
_KEY, _OWNER = 8, 4
_SETTLED = 2_000_000_000
"""Nanoseconds. A database that changed more recently may change again within one tick of the file
system's clock, so an index built from it is not cached."""


_last: dict[tuple[Path, str], tuple[str, OwnerIndex]] = {}
"""The last index by cache directory and name, with the state of the databases."""


class Package(NamedTuple):
    """One installed package, and whether the user requested it (None: unknown)."""

    purl: str
    requested: bool | None


PackageFiles = Iterable[tuple[Package, Iterable[bytes]]]
"""Each package with the paths it owns."""


class OwnerIndex:
    """Maps paths to packages, with two arrays sorted by the hash of the path."""

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
    def build(cls, owned: PackageFiles) -> OwnerIndex:
        """If two packages own one path, the first one counts."""
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
    def from_bytes(cls, data: bytes, state: str) -> OwnerIndex | None:
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


def load_index(
    cache: Path | None, name: str, sources: Iterable[Path], read: Callable[[], PackageFiles]
) -> OwnerIndex:
    """The cached index if the databases have not changed since, else a new one."""
    sources = list(sources)
    state, newest = _state(sources)
    cached = _read_index(cache, name, state) if cache else None
    if cached is not None:
        return cached
    new = OwnerIndex.build(read())
    if cache and time.time_ns() - newest > _SETTLED and _state(sources)[0] == state:
        _last[cache, name] = state, new
        user_cache.write_cached(cache, name, _cache_key(state), new.to_bytes(state))
    return new


def _read_index(cache: Path, name: str, state: str) -> OwnerIndex | None:
    """The cached index. Its arrays are shared, because each worker of a run reads it and would
    otherwise need megabytes of its own."""
    before, shared = _last.get((cache, name), (None, None))
    if before != state or shared is None:
        data = user_cache.read_cached(cache, name, _cache_key(state))
        shared = None if data is None else OwnerIndex.from_bytes(data, state)
    if shared is None:
        return None
    _last[cache, name] = state, shared
    return OwnerIndex(shared.packages, shared._keys, shared._owners)


def _cache_key(state: str) -> str:
    """Other format versions and byte orders have files of their own."""
    return f"{_FORMAT} {sys.byteorder}\n{state}"


def _key(path: bytes) -> int:
    return int.from_bytes(blake3(path).digest(length=8), sys.byteorder)


def _state(sources: Iterable[Path]) -> tuple[str, int]:
    """The file states of the databases, and when the last of them changed."""
    states: list[str] = []
    newest = 0
    for source in sources:
        try:
            stat = os.stat(source)
        except OSError:
            states.append(f"{source} -")
            continue
        newest = max(newest, stat.st_mtime_ns, stat.st_ctime_ns)
        times = f"{stat.st_mtime_ns} {stat.st_ctime_ns}"
        states.append(f"{source} {stat.st_dev} {stat.st_ino} {stat.st_size} {times}")
    return "\n".join(states).encode(errors="surrogateescape").decode(errors="replace"), newest
