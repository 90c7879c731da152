"""Derive from a record the files that an execution found when it began.

The earliest fact about a path says what was there: bytes that were read, a link that was followed,
a name that was looked up and absent. A path that was only listed or examined, never read, becomes a
stub: of the right kind, size and times as far as they are known, but without its bytes.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import msgspec
from blake3 import blake3

from clew.documents.ids import Digest
from clew.errors import Damaged
from clew.prov.event_numbers import MOVES
from clew.prov.locators import path_of
from clew.prov.queries.execution_record import ExecutionRecord, Look, Version
from clew.safe_path import KERNEL_DIRECTORIES
from clew.store import Store

_NOT_NORMALIZED = re.compile(rb"/\.{0,2}(?:/|\Z)")
"""A pattern for dots and doubled slashes in a path."""

ReadListing = Callable[[Digest], list[bytes]]
"""Reads the names of a listed directory by the digest of the listing."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """The file, directory, link or stub at one path."""

    kind: str
    """file, directory, link or stub."""
    mode: int = 0o755
    mtime: int = 0
    size: int = 0
    digest: Digest = Digest("")
    target: bytes = b""


@dataclass(frozen=True)
class InitialFiles:
    """The file tree that an execution began with, as far as it is known."""

    entries: dict[bytes, Entry]
    missing: list[bytes] = field(default_factory=list)
    """Paths that were read and whose bytes are not stored."""

    @property
    def digest(self) -> str:
        """Identifies the file tree: equal trees have equal digests."""
        return blake3(msgspec.msgpack.encode(sorted(self.entries.items()))).hexdigest(length=16)

    def with_changes(self, entries: dict[bytes, Entry | None]) -> InitialFiles:
        """Return a copy with these paths added or replaced, or removed (None)."""
        after = {path: entry for path, entry in self.entries.items() if path not in entries}
        after |= {path: entry for path, entry in entries.items() if entry is not None}
        missing = [path for path in self.missing if path not in entries]
        return InitialFiles(_add_directories(after), missing)


def make_listing_reader(store: Store) -> ReadListing:
    """Return a function that reads each listing once. Valid while the store is open."""

    @cache
    def names(digest: Digest) -> list[bytes]:
        return store.read_whole(digest).split(b"\0")

    return names


def find_initial_files(record: ExecutionRecord, read_listing: ReadListing) -> InitialFiles:
    """Derive the file tree that `record` began with."""
    return _InitialFilesBuilder(record, read_listing).build()


class _InitialFilesBuilder:
    def __init__(self, record: ExecutionRecord, read_listing: ReadListing) -> None:
        self._record = record
        self._read_listing = read_listing
        self._entries: dict[bytes, Entry] = {}
        self._missing: list[bytes] = []
        self._links = _initial_links(record)
        self._resolved_directories: dict[bytes, bytes] = {}
        self._mutated = _first_changes(record)
        self._lines = [
            (path, line)
            for locator, line in record.lines.items()
            if (path := path_of(locator)) is not None and not path.startswith(KERNEL_DIRECTORIES)
        ]
        self._looks: dict[bytes, list[Look]] = {}
        paths: dict[str, bytes] = {}  # many processes look at the same
        for look in record.looked:
            resolved = paths.get(look.locator)
            if resolved is None:
                path = path_of(look.locator)
                if path is None or path.startswith(KERNEL_DIRECTORIES):
                    continue
                resolved = paths[look.locator] = self._resolve(path)
            self._looks.setdefault(resolved, []).append(look)

        self._searched = {
            os.path.dirname(path)
            for path, looks in self._looks.items()
            if any(look.kind == "absent" and look.answer == "ENOENT" for look in looks)
        }
        """Parents of paths that were looked up: a parent that exists is a directory, or the answer
        would have been different."""

    def build(self) -> InitialFiles:
        for link, target in self._links.items():
            times = (_parse_times(k.answer) for k in self._looks.get(link, ()) if k.kind == "times")
            mtime = next((mtime for mode, _, mtime in times if stat.S_ISLNK(mode)), 0)
            self._entries[link] = Entry("link", mode=0o777, mtime=mtime, target=target)
        for path, line in self._lines:
            self._found(path, line[0])
        for path, looks in self._looks.items():
            if path not in self._entries:
                self._looked(path, looks)
        for path, looks in self._looks.items():
            listed = {""}
            for look in looks:  # a later listing of the same names adds nothing
                if look.kind == "listing" and look.answer not in listed:
                    listed.add(look.answer)
                    self._listed(path, look)
        self._parents()
        self._entries.pop(b"/", None)
        return InitialFiles(_add_directories(self._entries), sorted(self._missing))

    def _found(self, path: bytes, first: Version) -> None:
        """Add a path that was read or written: what was there first."""
        if not _is_normalized(path):  # no witness writes that: the record was tampered with
            raise Damaged(f"{os.fsdecode(path)} is not a normalised path", hint="clew fsck")
        if not first.found or path in self._entries:
            return
        mode = first.mode or 0o100644
        if first.digest is not None and first.stored:
            self._entries[path] = Entry(
                "file",
                mode=stat.S_IMODE(mode),
                mtime=first.mtime or 0,
                size=first.size or 0,
                digest=first.digest,
            )
        elif self._read(first):
            self._missing.append(path)
        else:
            looks = (look for look in self._looks.get(path, ()) if look.kind == "times")
            times = next((_parse_times(look.answer) for look in looks), (mode, 0, first.mtime or 0))
            self._entries[path] = Entry("stub", stat.S_IMODE(times[0]), times[2], times[1])

    def _read(self, version: Version) -> bool:
        edges = (edge for edge in self._record.used if edge.version == version.key)
        return any(edge.how not in MOVES for edge in edges)

    def _looked(self, path: bytes, looks: list[Look]) -> None:
        """Add a path that was only examined, if it was before the execution itself changed it."""
        first, until = looks[0], self._mutated.get(path, looks[-1].at)
        if first.kind == "absent" or first.at > until:
            return
        times = (
            _parse_times(look.answer) for look in looks if look.kind == "times" and look.at <= until
        )
        overwritten = (
            int(first.answer, 8) if first.kind == "present" and first.answer[:1].isdigit() else 0
        )
        mode, size, mtime = next(times, (overwritten, 0, 0))
        listed = any(look.kind == "listing" for look in looks)
        mounted = path + b"/" in KERNEL_DIRECTORIES  # bubblewrap needs a directory there
        if listed or mounted or stat.S_ISDIR(mode) or (not mode and path in self._searched):
            self._entries[path] = Entry("directory", stat.S_IMODE(mode) or 0o755, mtime)
        elif not stat.S_ISLNK(mode):
            self._entries[path] = Entry("stub", stat.S_IMODE(mode) or 0o644, mtime, size)

    def _listed(self, directory: bytes, look: Look) -> None:
        """Add names that a listing showed and that were not examined further."""
        prefix = os.path.join(directory, b"")
        for name in self._read_listing(Digest(look.answer)):
            path = prefix + name
            if path in self._entries:
                continue
            absent = any(  # ENOTDIR: it is there, but is no directory
                other.kind == "absent" and other.answer != "ENOTDIR"
                for other in self._looks.get(path, ())
            )
            made = self._mutated.get(path, look.at + 1) <= look.at
            if not absent and not made and path not in self._directories:
                is_directory = path in self._searched or path + b"/" in KERNEL_DIRECTORIES
                self._entries[path] = Entry("directory") if is_directory else Entry("stub", 0o644)

    @property
    def _directories(self) -> set[bytes]:
        known: set[bytes] | None = self.__dict__.get("_known_directories")
        if known is None:
            known = set()
            for path in self._entries:
                _add_parents(path, known)
            self.__dict__["_known_directories"] = known
        return known

    def _parents(self) -> None:
        """Add the directories that the execution wrote in, unless it made them itself."""
        cwd = self._record.itself.cwd
        places = [os.fsencode(cwd) + b"/."] if cwd else []
        places += [path for path, line in self._lines if not line[0].found]
        for path in places:
            directory = os.path.dirname(path)
            while directory not in self._entries and len(directory) > 1:
                if any(look.kind == "absent" for look in self._looks.get(directory, ())):
                    break
                self._entries[directory] = Entry("directory")
                directory = os.path.dirname(directory)

    def _resolve(self, path: bytes) -> bytes:
        """Normalize the path and resolve the links that lead to its directory."""
        directory, name = os.path.split(path)
        resolved = self._resolved_directories.get(directory)
        if resolved is None:  # most paths share a directory with others
            resolved = self._resolved_directories[directory] = self._resolve_directory(directory)
        joined = os.path.join(resolved, name)
        if _is_normalized(joined):
            return joined
        return b"/" + os.path.normpath(joined).lstrip(b"/")  # normpath keeps two leading slashes

    def _resolve_directory(self, directory: bytes) -> bytes:
        """Resolve the links in a directory's path."""
        for _ in range(40):
            above = {directory}
            _add_parents(directory, above)
            link = next((f for f in sorted(above, key=len) if f in self._links), None)
            if link is None:
                break
            to = os.path.join(os.path.dirname(link), self._links[link])
            directory = to + directory[len(link) :]
        return directory


def _initial_links(record: ExecutionRecord) -> dict[bytes, bytes]:
    """Links that existed at the beginning, with their targets."""
    made = {
        record.versions[edge.version].locator: edge.at
        for edge in reversed(record.generated)
        if edge.how in ("symlink", "rename", "link", "exchange")
    }
    links: dict[bytes, bytes] = {}
    for look in record.looked:
        path = path_of(look.locator) if look.kind == "link" else None
        if path is not None and not (path + b"/").startswith(KERNEL_DIRECTORIES):
            target = path_of(f"file:///{look.answer}") or b""
            if look.answer and look.at < made.get(look.locator, look.at + 1):
                links.setdefault(path, target[1:])
    return links


def _first_changes(record: ExecutionRecord) -> dict[bytes, int]:
    """The time at which the execution itself first made or removed each path."""
    first: dict[bytes, int] = {}
    for edge in (*record.generated, *record.invalidated):
        path = path_of(record.versions[edge.version].locator)
        if path is not None and edge.at < first.get(path, edge.at + 1):
            first[path] = edge.at
    return first


def _parse_times(answer: str) -> tuple[int, int, int]:
    mode, size, mtime = answer.split(" ")
    return int(mode, 8), int(size), int(mtime)


def _add_directories(entries: dict[bytes, Entry]) -> dict[bytes, Entry]:
    """Add every parent directory; a stub with something below it becomes one. Drop paths below a
    file or link, which the record contradicts, and paths with `..`: an untrusted record must not
    escape a root."""
    entries = {path: entry for path, entry in entries.items() if _is_normalized(path)}
    directories: set[bytes] = set()
    for path in entries:
        _add_parents(path, directories)
    blocked = {f for f in directories if f in entries and entries[f].kind in ("file", "link")}
    if blocked:
        return _add_directories({p: e for p, e in entries.items() if not _is_below(p, blocked)})
    for directory in directories:
        known = entries.get(directory)
        if known is None or known.kind == "stub":
            entries[directory] = Entry("directory", mtime=known.mtime if known else 0)
    return entries


def _is_normalized(path: bytes) -> bool:
    """Whether a path has no `.` or `..` components and no doubled slashes."""
    return _NOT_NORMALIZED.search(path) is None or path == b"/"


def _is_below(path: bytes, directories: set[bytes]) -> bool:
    above: set[bytes] = set()
    _add_parents(path, above)
    return not above.isdisjoint(directories)


def _add_parents(path: bytes, to: set[bytes]) -> None:
    directory = os.path.dirname(path)
    while len(directory) > 1 and directory not in to:
        to.add(directory)
        directory = os.path.dirname(directory)
