"""Merge the files of a checkout into the initial files of its execution, for a commit.

For files that users edit, the checkout is authoritative: a missing file is deleted. Everything else
(packages, system files, links, stubs) comes from the record, and from the executions it was
modified from: they had the same environment, and an execution that ended early has not accessed all
of it.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from clew.documents.ids import Digest
from clew.prov.queries.execution_record import ExecutionRecord
from clew.replay.checkout.working_tree import MODE_BITS, TrackedFile, select_files
from clew.replay.sandbox.initial_files import Entry, InitialFiles

_MAX_LINKS = 40
"""Links to follow on the way to one file."""


def amend_files(
    line: Sequence[tuple[ExecutionRecord, InitialFiles]],
    before: Iterable[TrackedFile],
    now: Iterable[TrackedFile],
    target: Callable[[Digest], bytes],
) -> dict[bytes, Entry | None]:
    """The changes to the first initial files of `line`; the others are its ancestors, nearest
    first. `before` and `now`: the files of the checkout; `target` reads the target of a link."""
    around = dict(line[0][1].entries)
    entries: dict[bytes, Entry | None] = {}
    for older, initial_files in line[1:]:
        theirs = select_files(older, initial_files)
        for path, entry in initial_files.entries.items():
            if path not in theirs and (path not in around or _knows_more(entry, around[path])):
                around[path] = entries[path] = entry
    entries |= dict.fromkeys(resolve_links(kept.path, around) for kept in before)
    for kept in now:
        path = resolve_links(kept.path, around)
        entries[path] = _entry(kept, around.get(path), target)
    return entries


def _knows_more(older: Entry, newer: Entry) -> bool:
    """Whether the older entry knows more: the bytes, that it is a directory, or the time."""
    if newer.kind == "stub" and older.kind != "stub":
        return True
    return older.kind == newer.kind and newer.kind in ("stub", "directory") and not newer.mtime


def _entry(kept: TrackedFile, before: Entry | None, target: Callable[[Digest], bytes]) -> Entry:
    if kept.link:
        return Entry("link", mode=0o777, target=target(kept.digest))
    if before and (before.kind, before.digest, before.mode & MODE_BITS) == (
        "file",
        kept.digest,
        kept.mode,
    ):
        return before  # as it was, also in its time
    return Entry("file", kept.mode, kept.mtime, kept.size, kept.digest)


def resolve_links(path: bytes, entries: Mapping[bytes, Entry]) -> bytes:
    """Resolve the links that lead to the path's directory."""
    for _ in range(_MAX_LINKS):
        parts = path.split(b"/")
        above = (b"/".join(parts[:count]) for count in range(2, len(parts)))
        link = next((f for f in above if f in entries and entries[f].kind == "link"), None)
        if link is None:
            break
        to = os.path.join(os.path.dirname(link), entries[link].target)
        path = os.path.normpath(to + path[len(link) :])
    return path
