"""Read stored directory listings."""

from __future__ import annotations

from functools import cache

from clew.replay.sandbox.initial_files import ReadListing
from clew.store import Store


def listing_reader(store: Store) -> ReadListing:
    """Return a function that reads each listing once. Valid while the store is open."""

    @cache
    def names(digest: str) -> list[bytes]:
        return b"".join(store.read(digest)).split(b"\0")

    return names
