"""Observations of directories, pipes and devices that were created, changed or removed.

They have no bytes and so no versions: the record holds looks of the kinds `made` and `removed`, and
the look that such a change implies. The answer contains the mode, the number of changes to the path
so far (which tells the last one) and, if it was set, the mtime.
"""

from __future__ import annotations

import stat

from clew.witness.syscalls.trace_format import Change, FileStat

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
