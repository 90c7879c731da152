"""What the bytes were: content is stored while the command runs, and believed only if proven.

A file is hashed after it was opened, without holding the program. Its digest counts only if
the file's state at hashing is the state at the open; otherwise the content that the tracer
saved in time counts, or there is a gap that says why.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from errno import ENOENT
from pathlib import Path

from blake3 import blake3
from msgspec import Struct

from clew.confined_files import HOST, Confined
from clew.errors import ClewError, NotAllowed, NotFound
from clew.redaction import PRIVATE_KEY_BYTES, SSH_DIRECTORY, is_private_key, matcher
from clew.safe_path import KERNEL_DIRECTORIES
from clew.store import Changed, Signature, Store, Stored
from clew.store.errors import TooSparse
from clew.witness.syscalls.trace_format import (
    AnyRecord,
    Change,
    Descriptor,
    Facts,
    Look,
    Open,
    Saved,
)
from clew.witness.syscalls.version_tracker import ContentKey, key_of

_NOTHING = f"blake3:{blake3(b'').hexdigest()}"

FileState = tuple[int, int, int, int]
"""Inode number, size, modification and change time."""


def is_file(path: bytes) -> bool:
    """Whether this is a place that has content of its own to keep."""
    return not path.startswith(KERNEL_DIRECTORIES) or path.startswith(b"/dev/shm/")


class KnownContent(Struct, frozen=True):
    """The content of one state of one file."""

    stored: Stored
    kept: bool


class ContentCapture:
    """The content of every state that was read, and of what is left at the end."""

    def __init__(
        self,
        store: Store,
        *,
        spool: Path,
        keep: bool,
        exclude: tuple[str, ...],
        until: int | None = None,
    ) -> None:
        """`until`: when the execution was last seen alive, if it is told without its recorder."""
        self._store = store
        self.files = HOST
        """The command's files, as its paths name them."""
        self._given: Mapping[FileState, str] = {}
        self._until = until
        self._spool = spool
        self._keep = keep
        self._matches = matcher(exclude)
        self._finds_keys = any(SSH_DIRECTORY in glob for glob in exclude)
        self._withheld: set[ContentKey] = (
            set()
        )  # opened by an excluded name that leads to another one
        self._known: dict[ContentKey, KnownContent] = {}
        self._asked: set[Facts] = set()
        self._missed: dict[ContentKey, tuple[bytes, str]] = {}
        self._same: dict[ContentKey, ContentKey] = {}
        self._listings: dict[Facts, tuple[list[bytes], bool]] = {}
        self._mapped: set[tuple[int, int]] = set()
        self._learnt: dict[Facts, KnownContent] = {}
        self._left: dict[bytes, tuple[KnownContent, os.stat_result] | str] = {}
        self.failure: ClewError | None = None
        """Why content is no longer stored: a full disk, say. The command goes on all the same."""

    def seen(self, files: Confined, given: Mapping[FileState, str]) -> None:
        """`files`: the command's files, if it has a root folder of its own; `given`: the content
        of files that were put there for it, all of it stored."""
        self.files, self._given = files, given

    def learn(self, facts: Facts, known: KnownContent) -> None:
        """The content of a file in this very state, from whoever put it there."""
        self._learnt[facts] = self._known[key_of(facts)] = known

    # -- while the command runs

    def follow(self, trace: Sequence[AnyRecord]) -> None:
        """Keep what these records say was read, as far as it can still be had."""
        reads: dict[Facts, bytes] = {}
        others: list[Saved | Change] = []
        told = [record for record in trace if not isinstance(record, Look)]  # the many
        for record in told:
            if isinstance(record, Change) and record.what == b"map" and record.before:
                self._mapped.add(record.before[:2])  # its times no longer tell its bytes
        for record in told:
            if isinstance(record, Open):
                self._opened(record, reads)
            elif isinstance(record, Saved | Change):
                others.append(record)
            elif isinstance(record, Descriptor) and record.facts and record.way & 1:
                self._read(record.name, record.facts, reads)
        self._attempt(reads)
        for other in others:
            if isinstance(other, Saved):
                self._take(other)
            elif other.before and other.after:
                self._moved(other, other.before, other.after)

    def _opened(self, record: Open, reads: dict[Facts, bytes]) -> None:
        facts, path = record.facts, record.real or record.path
        if facts is None or record.flags & os.O_PATH:
            return
        if path != record.path and self._excluded(record.path):
            self._withheld.add(key_of(facts))
        if stat.S_ISDIR(facts.mode):
            self._list(path, facts)
        elif record.flags & os.O_ACCMODE != os.O_WRONLY and not record.flags & os.O_TRUNC:
            self._read(path, facts, reads)

    def _read(self, path: bytes, facts: Facts, reads: dict[Facts, bytes]) -> None:
        if facts[:2] in self._mapped:
            return
        if facts not in self._asked and stat.S_ISREG(facts.mode) and is_file(path):
            self._asked.add(facts)
            if facts in self._learnt:
                return
            if not facts.size:  # nothing is saved of what is empty: there is nothing to save
                self._take_nothing(path, facts)
                return
            given = self._given.get(facts[1:5])
            if given is not None:
                self._known[key_of(facts)] = KnownContent(Stored(given, facts.size), True)
            elif key_of(facts) not in self._known:
                reads[facts] = path

    def _take_nothing(self, path: bytes, facts: Facts) -> None:
        keep = self._keeps(path)
        try:
            stored = self._store.put_bytes(b"") if keep else Stored(_NOTHING, 0)
            self._known[key_of(facts)] = KnownContent(stored, keep)
        except ClewError as error:
            self._fail(key_of(facts), path, error)

    def _attempt(self, reads: dict[Facts, bytes]) -> None:
        """Store these files, each only if it is still in the state it was opened in. One whose
        content in that very state is stored already need not even be there any more."""
        for keep, files in self._sorted(reads):
            for facts, path, answer in self._put(files, keep=keep):
                if isinstance(answer, Changed):
                    why = "changed by somebody else before it could be kept"
                    self._missed[key_of(facts)] = (path, why)
                elif isinstance(answer, ClewError):
                    self._fail(key_of(facts), path, answer)
                else:
                    self._known[key_of(facts)] = KnownContent(answer, keep)

    def _put(
        self, files: list[tuple[Facts, bytes]], *, keep: bool
    ) -> Iterator[tuple[Facts, bytes, Stored | ClewError]]:
        signatures = [Signature(*facts[:5]) for facts, _ in files]
        unknown: list[int] = []
        for i, known in enumerate(self._store.recall(signatures)):
            if known is None:
                unknown.append(i)
            else:
                yield *files[i], known
        if unknown:
            answers = self._store.put_files(
                [files[i][1] for i in unknown],
                expect=[signatures[i] for i in unknown],
                keep=keep,
                within=self.files,
            )
            for i, answer in zip(unknown, answers, strict=True):
                yield *files[i], answer

    def _sorted(
        self, reads: dict[Facts, bytes]
    ) -> Iterator[tuple[bool, list[tuple[Facts, bytes]]]]:
        kept: dict[bool, list[tuple[Facts, bytes]]] = {True: [], False: []}
        for facts, path in reads.items():
            keep = self._keeps(path) and key_of(facts) not in self._withheld
            kept[keep].append((facts, path))
        yield from ((keep, files) for keep, files in kept.items() if files)

    def _fail(self, key: ContentKey, path: bytes, error: ClewError) -> None:
        self._missed[key] = (path, error.message)
        self._note_failure(error)

    def _note_failure(self, error: ClewError) -> None:
        """Remember why content is no longer stored, unless only this file is concerned."""
        if not isinstance(error, NotFound | NotAllowed | TooSparse):
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
                keep = self._keeps(record.path, saved=saved) and key not in self._withheld
                self._known[key] = KnownContent(self._store.put_file(saved, keep=keep), keep)
            if self._until is None:  # a recovery that fails begins again, and needs it then
                Path(os.fsdecode(saved)).unlink()
        except ClewError as error:
            self._fail(key, record.path, error)
        except OSError as error:
            self._missed.setdefault(key, (record.path, f"cannot be read: {error.strerror}"))

    def _moved(self, record: Change, before: Facts, after: Facts) -> None:
        """The bytes are the same under a new name, or with new times."""
        if record.what == b"metadata" and before.size == after.size:
            self._same[key_of(after)] = key_of(before)
        key = key_of(before)
        if record.what == b"exchange":
            return  # `after` is of the other file
        if key in self._missed and key not in self._known and before in self._asked:
            self._attempt({after: record.path2 or record.path})

    def _list(self, path: bytes, facts: Facts) -> None:
        if facts in self._listings or not is_file(path):
            return
        try:
            names, found = self.files.listdir(path)
            same = found.st_mtime_ns == facts.mtime
        except OSError:
            return  # the fact is recorded without the names: nothing is claimed that was not seen
        if facts not in self._listings:
            self._listings[facts] = names, same

    # -- when it has ended

    def known(self, facts: Facts) -> KnownContent | None:
        """The content of this state, if it is proven."""
        key: ContentKey | None = key_of(facts)
        seen: set[ContentKey] = set()
        while key is not None and key not in seen:
            if key in self._known:
                return self._known[key]
            seen.add(key)
            key = self._same.get(key)
        return None

    def why_missing(self, facts: Facts) -> str:
        missed = self._missed.get(key_of(facts))
        return missed[1] if missed else "never seen whole"

    def listing(self, facts: Facts) -> tuple[list[bytes], bool] | None:
        """The names that were found in a folder soon after it was listed in this state, and whether
        it still was in that state."""
        return self._listings.get(facts)

    def keep_all(self, data: list[bytes]) -> list[str]:
        """Keep what is no file; the digests, or nothing where it cannot be kept."""
        try:
            if self._keep:
                return [kept.digest for kept in self._store.put_all(data)]
        except ClewError:
            pass
        return [""] * len(data)

    def settle(self, paths: Iterable[bytes]) -> None:
        """Store what is at these paths now: what the execution leaves."""
        there: dict[Facts, tuple[bytes, os.stat_result]] = {}
        for path in paths:
            try:
                found = self.files.lstat(path)
                if self._until is not None and found.st_ctime_ns > self._until:
                    self._left[path] = "changed when nobody was watching any more"
                elif stat.S_ISLNK(found.st_mode):
                    self._left[path] = self._target(self.files.readlink(path)), found
                elif (found.st_dev, found.st_ino) in self._mapped:
                    keep = self._keeps(path)
                    stored = self._store.put_file(path, keep=keep, anew=True, within=self.files)
                    self._left[path] = KnownContent(stored, keep), found
                elif stat.S_ISREG(found.st_mode):
                    there[Facts(*Signature.of(found), found.st_mode)] = path, found
                else:
                    self._left[path] = "not a regular file"
            except OSError as error:
                self._left[path] = "gone" if error.errno == ENOENT else f"{error.strerror}"
            except ClewError as error:
                self._left[path] = error.message
                self._note_failure(error)
        fresh = {facts: path for facts, (path, _) in there.items() if facts not in self._learnt}
        self._attempt(fresh)
        for facts, (path, found) in there.items():
            known = self._known.get(key_of(facts))
            self._left[path] = (known, found) if known else self.why_missing(facts)

    def _target(self, target: bytes) -> KnownContent:
        """A link's content is where it leads."""
        if self._keep:
            return KnownContent(self._store.put_bytes(target), True)
        return KnownContent(Stored(f"blake3:{blake3(target).hexdigest()}", len(target)), False)

    def left(self, path: bytes) -> tuple[KnownContent, os.stat_result] | str:
        """The content of what is at this path now, or why there is none."""
        return self._left.get(path, "gone")

    def _keeps(self, path: bytes, *, saved: bytes | None = None) -> bool:
        """Whether to store this file; `saved`: the copy that the tracer made of it."""
        return self._keep and not self._excluded(path, saved=saved)

    def _excluded(self, path: bytes, *, saved: bytes | None = None) -> bool:
        return self._matches(os.fsdecode(path)) or self._is_private_key(path, saved)

    def _is_private_key(self, path: bytes, saved: bytes | None) -> bool:
        """SSH keys may have any name: recognize those that are beside the usual ones."""
        if not self._finds_keys or SSH_DIRECTORY.encode() not in path:
            return False
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
        try:
            descriptor = os.open(saved, flags) if saved else self.files.open(path, flags)
        except OSError:
            return False
        with open(descriptor, "rb") as file:
            return is_private_key(file.read(PRIVATE_KEY_BYTES))
