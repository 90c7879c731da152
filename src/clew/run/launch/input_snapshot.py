"""Whether all that a program met so far is still as it met it: asked before each of its children
is started, so it is a matter of looking at a few hundred files, not of reading them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from clew.witness.syscalls.trace_format import OPEN, AnyRecord, Facts, Look, Open
from clew.witness.syscalls.version_tracker import facts_of

_PSEUDO_FILES = (b"/proc", b"/sys", b"/dev")
_AS_LINK = 1


class InputSnapshot:
    """The state of everything that was opened or looked at."""

    def __init__(self) -> None:
        self._there: dict[tuple[bytes, bool], Facts] = {}
        self._absent: dict[bytes, list[bytes]] = {}
        self._folders: dict[bytes, tuple[int, int, int] | None] = {}

    @classmethod
    def of(cls, trace: Iterable[AnyRecord]) -> InputSnapshot:
        """As a trace tells it."""
        found = cls()
        for record in trace:
            if isinstance(record, Open) and record.image == 0 and record.facts:
                found._seen(record.real or record.path, record.facts, follow=True)
            elif isinstance(record, Look):
                found._looked(record)
        return found

    @classmethod
    def now(cls, paths: Iterable[bytes]) -> InputSnapshot:
        """As these paths are."""
        found = cls()
        for path in paths:
            try:
                for follow in (True, False):
                    facts = facts_of(os.stat(path, follow_symlinks=follow))
                    found._seen(path, facts, follow=follow)
            except OSError:
                found._missing(path)
        return found

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
            self._missing(record.path)
        elif record.facts:
            linked = record.kind != OPEN and bool(record.flags & _AS_LINK)
            self._seen(record.path, record.facts, follow=not linked)

    def _missing(self, path: bytes) -> None:
        if path.startswith(b"/") and not path.startswith(_PSEUDO_FILES):
            folder = os.path.dirname(path)
            while folder != b"/" and not os.path.lexists(folder):
                folder = os.path.dirname(folder)  # as long as that has no new name, nor has this
            if folder not in self._folders:
                self._folders[folder] = _state(folder)
            self._absent.setdefault(folder, []).append(path)

    def _seen(self, path: bytes, facts: Facts, *, follow: bool) -> None:
        if path.startswith(b"/") and not path.startswith(_PSEUDO_FILES):
            self._there[path, follow] = facts


def _state(folder: bytes) -> tuple[int, int, int] | None:
    try:
        now = os.stat(folder)
    except OSError:
        return None
    return now.st_ino, now.st_mtime_ns, now.st_ctime_ns
