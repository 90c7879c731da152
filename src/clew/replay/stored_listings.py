"""The names of folders that were listed: kept in the store, and each listing is read from it once,
however many processes listed the same."""

from __future__ import annotations

from functools import cache

from clew.replay.sandbox.initial_files import ReadListing
from clew.store import Store


def listing_reader(store: Store) -> ReadListing:
    """As long as the store is open."""

    @cache
    def names(digest: str) -> list[bytes]:
        return b"".join(store.read(digest)).split(b"\0")

    return names
