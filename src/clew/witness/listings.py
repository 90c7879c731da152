"""Which names a folder had when it was listed, though it was looked at from here only later.

The names are read as soon as the listing is heard of; what the run itself made or removed in
between is known from its own records, in their order. A folder that changed in between by
nobody's doing here was changed by somebody else: then nothing is claimed.
"""

from __future__ import annotations

import os
from collections import defaultdict

from msgspec import Struct

from clew.witness.contents import Contents
from clew.witness.records import Facts


class Listing(Struct, frozen=True):
    """One listing whose names are to be settled."""

    image: int
    path: bytes
    facts: Facts
    seq: int
    at: int


class Listings:
    """The listings of one execution, and the names that came and went meanwhile."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._listed: list[Listing] = []
        self._changes: dict[bytes, list[tuple[int, bytes, bool]]] = defaultdict(list)
        self._kept: dict[Facts, str] = {}

    def listed(self, listing: Listing) -> None:
        self._listed.append(listing)

    def changed(self, path: bytes, seq: int, *, existed: bool) -> None:
        """This path was made, replaced or removed; `existed`: it was there before that."""
        folder, name = os.path.split(path)
        self._changes[folder].append((seq, name, existed))

    def settled(self) -> list[tuple[Listing, str]]:
        """Each listing with the digest of its names, or nothing where they are not known."""
        return [(listing, self._names(listing)) for listing in self._listed]

    def _names(self, listing: Listing) -> str:
        read = self._contents.listing(listing.facts)
        if read is None:
            return ""
        names, same = read
        later: dict[bytes, bool] = {}
        for seq, name, existed in self._changes.get(listing.path, ()):
            if seq > listing.seq:
                later.setdefault(name, existed)  # the first change tells what was there before
        if not later:
            return self._unchanged(listing.facts, names) if same else ""
        there = {*names, *(name for name, existed in later.items() if existed)}
        gone = {name for name, existed in later.items() if not existed}
        return self._contents.names(sorted(there - gone))

    def _unchanged(self, facts: Facts, names: list[bytes]) -> str:
        """Many may have listed a folder in one state: its names are kept once."""
        found = self._kept.get(facts)
        if found is None:
            found = self._kept[facts] = self._contents.names(sorted(names))
        return found
