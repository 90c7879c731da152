"""Whether all that a program met so far is still as it met it: asked before each of its children
is started, so it is a matter of looking at a few hundred files, not of reading them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from clew.witness.records import OPEN, AnyRecord, Facts, Look, Open

_PASSING = (b"/proc", b"/sys", b"/dev")
_AS_LINK = 1


class Standing:
    """The state of everything that a trace says was opened or looked at."""

    def __init__(self, trace: Iterable[AnyRecord]) -> None:
        self._there: dict[tuple[bytes, bool], Facts] = {}
        self._absent: dict[bytes, list[bytes]] = {}
        for record in trace:
            if isinstance(record, Open) and record.image == 0 and record.facts:
                self._seen(record.real or record.path, record.facts, follow=True)
            elif isinstance(record, Look):
                self._looked(record)
        self._folders = {folder: _state(folder) for folder in self._absent}

    def changed(self) -> str | None:
        """The first path that is not as it was."""
        for (path, follow), facts in self._there.items():
            try:
                now = os.stat(path, follow_symlinks=follow)
            except OSError:
                return os.fsdecode(path)
            state = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
            if state != facts[:5]:
                return os.fsdecode(path)
        for folder, names in self._absent.items():
            if _state(folder) == self._folders[folder] is not None:
                continue  # no name has come or gone in there
            for path in names:
                if os.path.lexists(path):
                    return os.fsdecode(path)
        return None

    def _looked(self, record: Look) -> None:
        if record.error:
            if not record.path.startswith(_PASSING) and record.path.startswith(b"/"):
                names = self._absent.setdefault(os.path.dirname(record.path), [])
                names.append(record.path)
        elif record.facts:
            linked = record.kind != OPEN and bool(record.flags & _AS_LINK)
            self._seen(record.path, record.facts, follow=not linked)

    def _seen(self, path: bytes, facts: Facts, *, follow: bool) -> None:
        if path.startswith(b"/") and not path.startswith(_PASSING):
            self._there[path, follow] = facts


def _state(folder: bytes) -> tuple[int, int, int] | None:
    try:
        now = os.stat(folder)
    except OSError:
        return None
    return now.st_ino, now.st_mtime_ns, now.st_ctime_ns
