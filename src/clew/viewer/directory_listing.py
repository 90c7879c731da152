"""List a directory, one page at a time."""

import os
import stat
import time
from collections.abc import Callable
from urllib.parse import quote_from_bytes, unquote_to_bytes

from msgspec import structs

from clew.documents.files.listings import DirectoryEntry, DirectoryListing, EntryKind
from clew.errors import ClewError, UsageError
from clew.viewer.upload import is_unfinished
from clew.viewer.volume import Volume, display_path, split_path

MAX_ENTRIES = 1000
"""Entries in one response."""
_KEYS: dict[str, Callable[[DirectoryEntry], str | int]] = {
    "name": lambda entry: entry.name.casefold(),
    "size": lambda entry: entry.size,
    "modified": lambda entry: entry.modified,
}


def list_directory(
    volume: Volume,
    path: bytes,
    *,
    sort: str = "name",
    descending: bool = False,
    offset: int = 0,
    limit: int = MAX_ENTRIES,
    containing: str = "",
) -> DirectoryListing:
    """One page of the entries of a directory, directories first."""
    if sort not in _KEYS:
        raise UsageError(f"cannot sort by {sort}: use one of {', '.join(_KEYS)}")
    with volume.directory(path) as directory:
        found = [
            _describe(entry)
            for entry in os.scandir(directory)
            if not is_unfinished(entry.name) and containing.casefold() in entry.name.casefold()
        ]
        writable = os.access(f"/proc/self/fd/{directory}", os.W_OK)
    found.sort(key=_KEYS["name"])
    if sort != "name" or descending:
        found.sort(key=_KEYS[sort], reverse=descending)
    found.sort(key=lambda entry: entry.kind != "folder")
    page = found[offset : offset + min(limit, MAX_ENTRIES)]
    above = b"/".join(split_path(path))
    return DirectoryListing(
        path=display_path(above) if above else "",
        writable=writable,
        total=len(found),
        offset=offset,
        entries=tuple(_follow_link(volume, above, entry) for entry in page),
    )


def _describe(entry: os.DirEntry[str]) -> DirectoryEntry:
    raw = os.fsencode(entry.name)
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # it went away meanwhile
        found = os.stat_result((0,) * 10)
    return DirectoryEntry(
        name=display_path(raw),
        href=quote_from_bytes(raw, safe=""),
        kind=_kind(found.st_mode),
        size=found.st_size if stat.S_ISREG(found.st_mode) else 0,
        modified=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found.st_mtime)),
        mode=stat.filemode(found.st_mode),
    )


def _follow_link(volume: Volume, above: bytes, entry: DirectoryEntry) -> DirectoryEntry:
    """A link with the kind of its target, unless that is outside the volume."""
    if entry.kind != "link":
        return entry
    try:
        found = volume.stat(b"/".join((above, unquote_to_bytes(entry.href))))
    except ClewError:
        return structs.replace(entry, leads=None)
    size = found.st_size if stat.S_ISREG(found.st_mode) else 0
    return structs.replace(entry, leads=_kind(found.st_mode), size=size)


def _kind(mode: int) -> EntryKind:
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"
