"""Which names a folder had when it was listed, though it was looked at from here only later.

The names are read as soon as the listing is heard of; what the run itself made or removed in
between is known from its own records, in their order. A folder that changed in between by
nobody's doing here was changed by somebody else: then nothing is claimed.
"""

from __future__ import annotations

import os
from collections import defaultdict

from msgspec import Struct

from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import Facts


class Listing(Struct, frozen=True):
    """One listing whose names are to be settled."""

    image: int
    path: bytes
    facts: Facts
    seq: int
    at: int


class DirectoryListings:
    """The listings of one execution, and the names that came and went meanwhile."""

    def __init__(self, contents: ContentCapture) -> None:
        self._contents = contents
        self._listed: list[Listing] = []
        self._changes: dict[bytes, list[tuple[int, bytes, bool]]] = defaultdict(list)

    def listed(self, listing: Listing) -> None:
        self._listed.append(listing)

    def changed(self, path: bytes, seq: int, *, existed: bool) -> None:
        """This path was made, replaced or removed; `existed`: it was there before that."""
        folder, name = os.path.split(path)
        self._changes[folder].append((seq, name, existed))

    def settled(self) -> list[tuple[Listing, str]]:
        """Each listing with the digest of its names, or nothing where they are not known."""
        joined: dict[Facts, bytes] = {}  # many may have listed a folder in one state
        found = [self._names(listing, joined) for listing in self._listed]
        different = list(dict.fromkeys(names for names in found if names is not None))
        kept = dict(zip(different, self._contents.keep_all(different), strict=True))
        digests = ("" if names is None else kept[names] for names in found)
        return list(zip(self._listed, digests, strict=True))

    def _names(self, listing: Listing, joined: dict[Facts, bytes]) -> bytes | None:
        read = self._contents.listing(listing.facts)
        if read is None:
            return None
        names, same = read
        later: dict[bytes, bool] = {}
        for seq, name, existed in self._changes.get(listing.path, ()):
            if seq > listing.seq:
                later.setdefault(name, existed)  # the first change tells what was there before
        if later:
            there = {*names, *(name for name, existed in later.items() if existed)}
            gone = {name for name, existed in later.items() if not existed}
            return b"\0".join(sorted(there - gone))
        if same and listing.facts not in joined:
            joined[listing.facts] = b"\0".join(sorted(names))
        return joined[listing.facts] if same else None
