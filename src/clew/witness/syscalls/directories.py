"""Directories: the names that a process listed, and changes of directories, pipes and devices.

The recorder reads the names a little later, when it gets the record of the listing. The trace says
which names the execution itself added or removed in between. If the directory changed in between
without such a record, another program changed it: then the names are unknown.

Directories, pipes and devices have no bytes and so no versions: their changes are recorded as looks
of the kinds `made` and `removed`, with the look that such a change implies. The answer contains the
mode, the number of changes to the path so far (which tells the last one) and, if it was set, the
mtime.
"""

import os
import stat
from collections import defaultdict

from msgspec import Struct

from clew.witness.syscalls.trace_contents import TraceContents
from clew.witness.syscalls.trace_format import Change, FileStat


class Listing(Struct, frozen=True):
    """One listing by a process."""

    image: int
    path: bytes
    file_stat: FileStat
    seq: int
    at: int


class DirectoryListings:
    """The listings of one execution, and the names it added and removed."""

    def __init__(self, contents: TraceContents) -> None:
        self._contents = contents
        self._pending: list[Listing] = []
        self._changes: dict[bytes, list[tuple[int, bytes, bool]]] = defaultdict(list)

    def add(self, listing: Listing) -> None:
        self._pending.append(listing)

    def add_change(self, path: bytes, seq: int, *, existed: bool) -> None:
        """The path was created, replaced or removed; `existed`: it existed before that."""
        directory, name = os.path.split(path)
        self._changes[directory].append((seq, name, existed))

    def resolve(self) -> list[tuple[Listing, str]]:
        """Each listing with the digest of its names; empty where they are unknown."""
        joined: dict[FileStat, bytes] = {}  # many processes list a directory in the same state
        names_of_each = [self._names(listing, joined) for listing in self._pending]
        different = list(dict.fromkeys(names for names in names_of_each if names is not None))
        digest_of = dict(zip(different, self._contents.store_all(different), strict=True))
        digests = ("" if names is None else digest_of[names] for names in names_of_each)
        return list(zip(self._pending, digests, strict=True))

    def _names(self, listing: Listing, joined: dict[FileStat, bytes]) -> bytes | None:
        read = self._contents.listing(listing.file_stat)
        if read is None:
            return None
        names, same = read
        later: dict[bytes, bool] = {}
        for seq, name, existed in self._changes.get(listing.path, ()):
            if seq > listing.seq:
                later.setdefault(name, existed)  # the first change says whether it existed before
        if later:
            present = {*names, *(name for name, existed in later.items() if existed)}
            gone = {name for name, existed in later.items() if not existed}
            return b"\0".join(sorted(present - gone))
        if same and listing.file_stat not in joined:
            joined[listing.file_stat] = b"\0".join(sorted(names))
        return joined[listing.file_stat] if same else None


PathObservation = tuple[str, bytes, str]
"""The kind, path and answer of a look."""


class DirectoryChanges:
    """Counts the changes to each path."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}

    def observe(self, change: Change) -> list[PathObservation]:
        """Describe a change to a directory, a pipe or a device; nothing for other changes."""
        path, before, after = change.path, change.before, change.after
        if change.what in (b"folder", b"node"):
            return [("absent", path, "ENOENT"), self._counted("made", path, after)]
        if before is None or not stat.S_ISDIR(before.mode):
            return []
        if change.what == b"delete":
            return [self._counted("removed", path, before)]
        if change.what == b"rename" and change.path2:
            removed = self._counted("removed", path, before)
            return [removed, self._counted("made", change.path2, before)]
        if change.what == b"metadata" and after is not None:
            kind, _, answer = self._counted("made", path, after)
            return [("present", path, f"{before.mode:o}"), (kind, path, f"{answer} {after.mtime}")]
        return []

    def _counted(self, kind: str, path: bytes, file_stat: FileStat | None) -> PathObservation:
        count = self._counts[path] = self._counts.get(path, 0) + 1
        return kind, path, f"{file_stat.mode if file_stat else 0:o} {count}"
