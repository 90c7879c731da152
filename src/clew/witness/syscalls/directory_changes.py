"""Folders, pipes and devices that were made, changed or removed.

They have no bytes, so they are no versions: they are told as looks of the kinds `made` and
`removed`, beside the look that such a change implies. The answer is the mode, how often something
was done to the path by then (so that what came last is known) and, where it was set, the time.
"""

from __future__ import annotations

import stat

from clew.witness.syscalls.trace_format import Change, Facts

Look = tuple[str, bytes, str]
"""Its kind, its path, and the answer."""


class DirectoryChanges:
    """Counts what is done to each path."""

    def __init__(self) -> None:
        self._times: dict[bytes, int] = {}

    def of(self, change: Change) -> list[Look]:
        """What this change tells, if it is one of a folder, a pipe or a device."""
        path, before, after = change.path, change.before, change.after
        if change.what in (b"folder", b"node"):
            return [("absent", path, "ENOENT"), self._deed("made", path, after)]
        if before is None or not stat.S_ISDIR(before.mode):
            return []
        if change.what == b"delete":
            return [self._deed("removed", path, before)]
        if change.what == b"rename" and change.path2:
            removed = self._deed("removed", path, before)
            return [removed, self._deed("made", change.path2, before)]
        if change.what == b"metadata" and after is not None:
            kind, _, answer = self._deed("made", path, after)
            return [("present", path, f"{before.mode:o}"), (kind, path, f"{answer} {after.mtime}")]
        return []

    def _deed(self, kind: str, path: bytes, facts: Facts | None) -> Look:
        times = self._times[path] = self._times.get(path, 0) + 1
        return kind, path, f"{facts.mode if facts else 0:o} {times}"
