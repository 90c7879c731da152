"""What the bytes were: content is stored while the command runs, and believed only if proven.

A file is hashed after it was opened, without holding the program. Its digest counts only if
the file's state at hashing is the state at the open; otherwise the content that the tracer
saved in time counts, or there is a gap that says why.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from clew.errors import ClewError, NotAllowed, NotFound
from clew.store import Changed, Signature, Store, Stored
from clew.witness.records import AnyRecord, Change, Descriptor, Facts, Open, Saved
from clew.witness.versions import Key, key_of

_UNSTORED = (b"/proc/", b"/sys/", b"/dev/")


def is_file(path: bytes) -> bool:
    """Whether this is a place that has content of its own to keep."""
    return not path.startswith(_UNSTORED) or path.startswith(b"/dev/shm/")


@dataclass(frozen=True)
class Known:
    """The content of one state of one file."""

    stored: Stored
    kept: bool


class Contents:
    """The content of every state that was read, and of what is left at the end."""

    def __init__(self, store: Store, *, spool: Path, keep: bool, exclude: tuple[str, ...]) -> None:
        self._store = store
        self._spool = spool
        self._keep = keep
        self._exclude = exclude
        self._known: dict[Key, Known] = {}
        self._asked: set[Facts] = set()
        self._missed: dict[Key, tuple[bytes, str]] = {}
        self._same: dict[Key, Key] = {}
        self._listings: dict[Facts, str] = {}
        self.failure: ClewError | None = None
        """Why content is no longer stored: a full disk, say. The command goes on all the same."""

    # -- while the command runs

    def follow(self, record: AnyRecord) -> None:
        """Keep what this record says was read, if it can still be had."""
        if isinstance(record, Open):
            path = record.real or record.path
            if record.error == 0 and record.facts and not record.flags & os.O_PATH:
                if stat.S_ISDIR(record.facts.mode):
                    self._list(path, record.facts)
                elif record.flags & os.O_ACCMODE != os.O_WRONLY and not record.flags & os.O_TRUNC:
                    self._read(path, record.facts)
        elif isinstance(record, Descriptor):
            if record.facts and record.way & 1:
                self._read(record.name, record.facts)
        elif isinstance(record, Saved):
            self._take(record)
        elif isinstance(record, Change) and record.before and record.after:
            self._moved(record, record.before, record.after)

    def _read(self, path: bytes, facts: Facts) -> None:
        if facts in self._asked or not stat.S_ISREG(facts.mode) or not is_file(path):
            return
        self._asked.add(facts)
        key = key_of(facts)
        if key not in self._known:
            self._attempt(path, facts)

    def _attempt(self, path: bytes, facts: Facts) -> None:
        key = key_of(facts)
        keep = self._keep and not self.excluded(path)
        try:
            stored = self._store.put_file(path, expect=Signature(*facts[:5]), keep=keep)
        except Changed:
            self._missed[key] = (path, "changed by somebody else before it could be kept")
        except ClewError as error:
            self._fail(key, path, error)
        else:
            self._known[key] = Known(stored, keep)

    def _fail(self, key: Key, path: bytes, error: ClewError) -> None:
        self._missed[key] = (path, error.message)
        if not isinstance(error, NotFound | NotAllowed):  # those are the file's own troubles
            self.failure = self.failure or error

    def _take(self, record: Saved) -> None:
        key = key_of(record.facts)
        if record.error:
            why = f"about to change, and could not be saved: {os.strerror(record.error)}"
            self._missed.setdefault(key, (record.path, why))
            return
        saved = os.fsencode(self._spool) + b"/" + record.name
        try:
            now = os.lstat(saved)
            if record.how == b"link" and (now.st_size, now.st_mtime_ns) != key[2:]:
                self._missed.setdefault(key, (record.path, "written to after it lost its name"))
            elif key not in self._known:
                self._known[key] = Known(self._store.put_file(saved, keep=self._keep), self._keep)
            os.unlink(saved)
        except ClewError as error:
            self._fail(key, record.path, error)
        except OSError as error:
            self._missed.setdefault(key, (record.path, f"cannot be read: {error.strerror}"))

    def _moved(self, record: Change, before: Facts, after: Facts) -> None:
        """The bytes are the same under a new name, or with new times."""
        if record.what == b"metadata" and before.size == after.size:
            self._same[key_of(after)] = key_of(before)
        key = key_of(before)
        if key in self._missed and key not in self._known and before in self._asked:
            self._attempt(record.path2 or record.path, after)

    def _list(self, path: bytes, facts: Facts) -> None:
        if facts in self._listings or not is_file(path):
            return
        try:
            names = sorted(os.listdir(path))
            same = os.stat(path).st_mtime_ns == facts.mtime
            if same and self._keep:
                self._listings[facts] = self._store.put_bytes(b"\0".join(names)).digest
        except (OSError, ClewError):
            pass  # the fact is recorded without the names: nothing is claimed that was not seen

    # -- when it has ended

    def known(self, facts: Facts) -> Known | None:
        """The content of this state, if it is proven."""
        key: Key | None = key_of(facts)
        seen: set[Key] = set()
        while key is not None and key not in seen:
            if key in self._known:
                return self._known[key]
            seen.add(key)
            key = self._same.get(key)
        return None

    def why_missing(self, facts: Facts) -> str:
        missed = self._missed.get(key_of(facts))
        return missed[1] if missed else "never seen whole"

    def listing(self, facts: Facts) -> str:
        return self._listings.get(facts, "")

    def left(self, path: bytes) -> tuple[Known, os.stat_result] | str:
        """The content of what is at this path now, or why there is none."""
        try:
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode):
                return Known(self._store.put_bytes(os.readlink(path)), True), found
            if not stat.S_ISREG(found.st_mode):
                return "not a regular file"
            keep = self._keep and not self.excluded(path)
            known = Known(self._store.put_file(path, expect=Signature.of(found), keep=keep), keep)
        except FileNotFoundError:
            return "gone"
        except ClewError as error:
            if not isinstance(error, Changed | NotFound | NotAllowed):
                self.failure = self.failure or error
            return error.message
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        self._known[(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)] = known
        return known, found

    def excluded(self, path: bytes) -> bool:
        text = os.fsdecode(path)
        return any(fnmatchcase(text, glob) for glob in self._exclude)
