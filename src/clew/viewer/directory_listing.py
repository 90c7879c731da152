"""List a directory, one page at a time."""

import os
import stat
import time
from typing import Any
from urllib.parse import quote_from_bytes

from clew.errors import ClewError, UsageError
from clew.viewer.upload import is_unfinished
from clew.viewer.volume import Volume, display_path, split_path

MAX_ENTRIES = 1000
"""Entries in one response."""
_KEYS: dict[str, Any] = {
    "name": lambda entry: entry["name"].casefold(),
    "size": lambda entry: entry["size"],
    "modified": lambda entry: entry["modified"],
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
) -> dict[str, Any]:
    """Entries of a directory, directories first; those of one page."""
    if sort not in _KEYS:
        raise UsageError(f"sorted by {', '.join(_KEYS)}; not by {sort}")
    with volume.directory(path) as directory:
        found = [
            _entry(entry, directory)
            for entry in os.scandir(directory)
            if not is_unfinished(entry.name) and containing.casefold() in entry.name.casefold()
        ]
        writable = os.access(f"/proc/self/fd/{directory}", os.W_OK)
    found.sort(key=_KEYS["name"])
    if sort != "name" or descending:
        found.sort(key=_KEYS[sort], reverse=descending)
    found.sort(key=lambda entry: entry["kind"] != "folder")
    page = found[offset : offset + min(limit, MAX_ENTRIES)]
    above = b"/".join(split_path(path))
    for entry in page:
        _complete(volume, above, entry)
    return {
        "path": display_path(above) if above else "",
        "writable": writable,
        "total": len(found),
        "offset": offset,
        "entries": page,
    }


def _entry(entry: os.DirEntry[str], directory: int) -> dict[str, Any]:
    raw = os.fsencode(entry.name)
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # it went away meanwhile
        found = os.stat_result((0,) * 10)
    return {
        "name": display_path(raw),
        "href": quote_from_bytes(raw, safe=""),
        "kind": _kind(found.st_mode),
        "size": found.st_size if stat.S_ISREG(found.st_mode) else 0,
        "modified": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found.st_mtime)),
        "mode": stat.filemode(found.st_mode),
        "raw": raw,
    }


def _complete(volume: Volume, above: bytes, entry: dict[str, Any]) -> None:
    """For a link also the kind of its target, unless that is outside the volume."""
    raw = entry.pop("raw")
    if entry["kind"] != "link":
        return
    try:
        found = volume.stat(b"/".join((above, raw)))
    except ClewError:
        entry["leads"] = None
    else:
        entry["leads"] = _kind(found.st_mode)
        entry["size"] = found.st_size if stat.S_ISREG(found.st_mode) else 0


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"
