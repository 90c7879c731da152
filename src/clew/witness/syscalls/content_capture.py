"""Store the content that a command reads and leaves, while it runs.

A file is hashed after it was opened, without stopping the program. The digest counts only if the
file is still in the state it had at the open. Otherwise the copy counts that the tracer saved
before the change; without such a copy, the record has a gap that says why.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from errno import ENOENT
from pathlib import Path

from blake3 import blake3
from msgspec import Struct

from clew.confined_files import HOST, Confined
from clew.documents.ids import Digest
from clew.errors import ClewError, NotAllowed, NotFound
from clew.redaction import make_credential_check, open_readonly
from clew.safe_path import KERNEL_DIRECTORIES
from clew.store import Changed, Signature, Store, Stored
from clew.store.errors import TooSparse
from clew.store.types import format_digest
from clew.witness.syscalls.trace_format import (
    AnyRecord,
    Change,
    ContentKey,
    Descriptor,
    FileStat,
    FileState,
    Open,
    Saved,
)

_NAME_CONTENT = (Open, Change, Saved, Descriptor)
"""The records that name content: less than half of a trace."""
_EMPTY_DIGEST = format_digest(blake3(b"").digest())


def is_file(path: bytes) -> bool:
    """Whether files at this path have content to record: `/proc` and the like have none."""
    return not path.startswith(KERNEL_DIRECTORIES) or path.startswith(b"/dev/shm/")


class KnownContent(Struct, frozen=True):
    """The content of one state of one file."""

    stored: Stored
    kept: bool


class ContentCapture:
    """The content of every file state that was read, and of the files at the end."""

    def __init__(
        self,
        store: Store,
        *,
        saved: Path,
        store_content: bool,
        exclude: tuple[str, ...],
        until: int | None = None,
    ) -> None:
        """`saved`: the directory where the tracer saves files before they change. `until`: the time
        of the last record, if the recorder was killed."""
        self._store = store
        self.files = HOST
        """The command's files, as its paths name them."""
        # files that were put there for the command, with content that is already stored
        self._provided: Mapping[FileState, Digest] = {}
        self._last_alive = until
        self._saved = saved
        self._store_content = store_content
        self._is_excluded = make_credential_check(exclude)
        # opened through a link whose name is excluded
        self._withheld: set[ContentKey] = set()
        self._known: dict[ContentKey, KnownContent] = {}
        # reads that were handled, with or without success
        self._attempted: set[FileStat] = set()
        self._why_missing: dict[ContentKey, str] = {}
        self._same_content: dict[ContentKey, ContentKey] = {}
        self._listings: dict[FileStat, tuple[list[bytes], bool]] = {}
        self._mapped: set[tuple[int, int]] = set()
        # files that a reused program would have written, put there instead of it
        self._preset: dict[FileStat, KnownContent] = {}
        self._final: dict[bytes, tuple[KnownContent, os.stat_result] | str] = {}
        self.failure: ClewError | None = None
        """Why content is no longer stored, such as a full disk. The command goes on anyway."""

    def use_files(self, files: Confined, provided: Mapping[FileState, Digest]) -> None:
        """`files`: access to the command's files, if it has its own root directory; `provided`: the
        stored content of files that were put there for it."""
        self.files, self._provided = files, provided

    def preset(self, file_stat: FileStat, known: KnownContent) -> None:
        """Set the content of a file in this state, which the caller has put there."""
        self._preset[file_stat] = self._known[file_stat.content_key] = known

    # -- while the command runs

    def follow(self, trace: Sequence[AnyRecord]) -> None:
        """Store the files that these records say were read, if they are still unchanged."""
        reads: dict[FileStat, bytes] = {}
        saved: list[Saved] = []
        moves: list[Change] = []
        records = [record for record in trace if type(record) in _NAME_CONTENT]
        for record in records:
            if isinstance(record, Change) and record.what == b"map" and record.before:
                self._mapped.add(record.before.inode_key)  # its bytes may change without its mtime
        for record in records:
            if isinstance(record, Open):
                self._on_open(record, reads)
            elif isinstance(record, Saved):
                saved.append(record)
            elif isinstance(record, Change):
                moves.append(record)
            elif isinstance(record, Descriptor) and record.file_stat and record.way & 1:
                self._on_read(record.name, record.file_stat, reads)
        self._store_unchanged(reads)
        self._store_saved(saved)
        for move in moves:
            if move.before and move.after:
                self._record_move(move, move.before, move.after)

    def _on_open(self, record: Open, reads: dict[FileStat, bytes]) -> None:
        file_stat, path = record.file_stat, record.real or record.path
        if file_stat is None or record.flags & os.O_PATH:
            return
        if path != record.path and self._excluded(record.path):
            self._withheld.add(file_stat.content_key)
        if stat.S_ISDIR(file_stat.mode):
            self._list_directory(path, file_stat)
        elif record.flags & os.O_ACCMODE != os.O_WRONLY and not record.flags & os.O_TRUNC:
            self._on_read(path, file_stat, reads)

    def _on_read(self, path: bytes, file_stat: FileStat, reads: dict[FileStat, bytes]) -> None:
        if self._mapped and file_stat.inode_key in self._mapped:
            return
        if file_stat not in self._attempted and stat.S_ISREG(file_stat.mode) and is_file(path):
            self._attempted.add(file_stat)
            if file_stat in self._preset:
                return
            if not file_stat.size:  # the tracer saves no copy of an empty file
                self._store_empty(path, file_stat)
                return
            provided = self._provided.get(file_stat.file_state)
            if provided is not None:
                self._known[file_stat.content_key] = KnownContent(
                    Stored(provided, file_stat.size), True
                )
            elif file_stat.content_key not in self._known:
                reads[file_stat] = path

    def _store_empty(self, path: bytes, file_stat: FileStat) -> None:
        keep = self._keeps(path)
        try:
            stored = self._store.put_bytes(b"") if keep else Stored(_EMPTY_DIGEST, 0)
            self._known[file_stat.content_key] = KnownContent(stored, keep)
        except ClewError as error:
            self._fail(file_stat.content_key, error)

    def _store_unchanged(self, reads: dict[FileStat, bytes]) -> None:
        """Store each of these files if it is still in the state it was opened in. If the store
        knows the content of that state already, the file need not exist any more."""
        for keep, files in self._group_by_keep(reads):
            for file_stat, answer in self._store_files(files, keep=keep):
                if isinstance(answer, Changed):
                    why = "changed by another program before it could be stored"
                    self._why_missing[file_stat.content_key] = why
                elif isinstance(answer, ClewError):
                    self._fail(file_stat.content_key, answer)
                else:
                    self._known[file_stat.content_key] = KnownContent(answer, keep)

    def _store_files(
        self, files: list[tuple[FileStat, bytes]], *, keep: bool
    ) -> Iterator[tuple[FileStat, Stored | ClewError]]:
        signatures = [Signature(*file_stat.without_mode) for file_stat, _ in files]
        unknown: list[int] = []
        for i, known in enumerate(self._store.recall(signatures)):
            if known is None:
                unknown.append(i)
            else:
                yield files[i][0], known
        if unknown:
            answers = self._store.put_files(
                [files[i][1] for i in unknown],
                expect=[signatures[i] for i in unknown],
                keep=keep,
                recalled=keep,
                within=self.files,
            )
            for i, answer in zip(unknown, answers, strict=True):
                yield files[i][0], answer

    def _group_by_keep(
        self, reads: dict[FileStat, bytes]
    ) -> Iterator[tuple[bool, list[tuple[FileStat, bytes]]]]:
        groups: dict[bool, list[tuple[FileStat, bytes]]] = {True: [], False: []}
        for file_stat, path in reads.items():
            keep = self._keeps(path) and file_stat.content_key not in self._withheld
            groups[keep].append((file_stat, path))
        yield from ((keep, files) for keep, files in groups.items() if files)

    def _fail(self, key: ContentKey, error: ClewError) -> None:
        self._why_missing[key] = error.message
        self._note_failure(error)

    def _note_failure(self, error: ClewError) -> None:
        """Remember why content is no longer stored, unless the error concerns only this file."""
        if not isinstance(error, NotFound | NotAllowed | TooSparse):
            self.failure = self.failure or error

    def _store_saved(self, records: list[Saved]) -> None:
        """Store the files that the tracer saved, and remove them."""
        wanted: dict[bool, list[tuple[ContentKey, bytes]]] = {True: [], False: []}
        done: list[bytes] = []
        for record in records:
            key = record.file_stat.content_key
            if record.error:
                why = f"could not be saved before it changed: {os.strerror(record.error)}"
                self._why_missing.setdefault(key, why)
                continue
            saved = os.fsencode(self._saved) + b"/" + record.name
            try:
                now = os.lstat(saved)
            except OSError as error:
                self._why_missing.setdefault(key, f"cannot be read: {error.strerror}")
                continue
            done.append(saved)
            if record.how == b"link" and (now.st_size, now.st_mtime_ns) != key[2:]:
                self._why_missing.setdefault(key, "written to after it was deleted")
            elif key not in self._known:
                keep = self._keeps(record.path, saved=saved) and key not in self._withheld
                wanted[keep].append((key, saved))
        for keep, files in wanted.items():
            if files:
                answers = self._store.put_files([saved for _, saved in files], keep=keep)
                for (key, saved), answer in zip(files, answers, strict=True):
                    if isinstance(answer, ClewError):
                        self._fail(key, answer)
                        done.remove(saved)
                    else:
                        self._known[key] = KnownContent(answer, keep)
        if self._last_alive is None:  # a failed recovery starts again and needs them
            for saved in done:
                Path(os.fsdecode(saved)).unlink(missing_ok=True)

    def _record_move(self, record: Change, before: FileStat, after: FileStat) -> None:
        """The file has the same bytes under a new name or with new times."""
        if record.what == b"metadata" and before.size == after.size:
            self._same_content[after.content_key] = before.content_key
        key = before.content_key
        if record.what == b"exchange":
            return  # `after` is of the other file
        if key in self._why_missing and key not in self._known and before in self._attempted:
            self._store_unchanged({after: record.path2 or record.path})

    def _list_directory(self, path: bytes, file_stat: FileStat) -> None:
        if file_stat in self._listings or not is_file(path):
            return
        try:
            names, status = self.files.listdir(path)
            same = status.st_mtime_ns == file_stat.mtime
        except OSError:
            return  # the listing is recorded without its names
        if file_stat not in self._listings:
            self._listings[file_stat] = names, same

    # -- after the command has ended

    def known(self, file_stat: FileStat) -> KnownContent | None:
        """The content of this state, if it is known for certain."""
        key: ContentKey | None = file_stat.content_key
        visited: set[ContentKey] = set()
        while key is not None and key not in visited:
            if key in self._known:
                return self._known[key]
            visited.add(key)
            key = self._same_content.get(key)
        return None

    def why_missing(self, file_stat: FileStat) -> str:
        return self._why_missing.get(file_stat.content_key, "its content was never seen")

    def listing(self, file_stat: FileStat) -> tuple[list[bytes], bool] | None:
        """The names in a directory soon after it was listed in this state, and whether it was still
        in that state."""
        return self._listings.get(file_stat)

    def store_all(self, data: list[bytes]) -> list[str]:
        """Store data that is not a file; the digests, or empty strings if it is not stored."""
        try:
            if self._store_content:
                return [kept.digest for kept in self._store.put_all(data)]
        except ClewError:
            pass
        return [""] * len(data)

    def store_final(self, paths: Iterable[bytes]) -> None:
        """Store the files at these paths as the execution leaves them."""
        present: list[tuple[FileStat, bytes, os.stat_result]] = []  # links share their FileStat
        for path in paths:
            try:
                status = self.files.lstat(path)
                if self._last_alive is not None and status.st_ctime_ns > self._last_alive:
                    self._final[path] = "changed after the recorder was killed"
                elif stat.S_ISLNK(status.st_mode):
                    self._final[path] = self._link_content(self.files.readlink(path)), status
                elif (status.st_dev, status.st_ino) in self._mapped:
                    keep = self._keeps(path)
                    stored = self._store.put_file(path, keep=keep, reread=True, within=self.files)
                    self._final[path] = KnownContent(stored, keep), status
                elif stat.S_ISREG(status.st_mode):
                    present.append((FileStat(*Signature.of(status), status.st_mode), path, status))
                else:
                    self._final[path] = "not a regular file"
            except OSError as error:
                self._final[path] = "gone" if error.errno == ENOENT else f"{error.strerror}"
            except ClewError as error:
                self._final[path] = error.message
                self._note_failure(error)
        fresh: dict[FileStat, bytes] = {}
        for file_stat, path, _ in present:
            if file_stat in self._preset:
                continue
            if file_stat not in fresh or self._excluded(path):  # excluded under any of its names
                fresh[file_stat] = path
        self._store_unchanged(fresh)
        for file_stat, path, status in present:
            known = self._known.get(file_stat.content_key)
            self._final[path] = (known, status) if known else self.why_missing(file_stat)

    def _link_content(self, target: bytes) -> KnownContent:
        """The content of a symbolic link is its target."""
        if self._store_content:
            return KnownContent(self._store.put_bytes(target), True)
        return KnownContent(Stored(format_digest(blake3(target).digest()), len(target)), False)

    def final(self, path: bytes) -> tuple[KnownContent, os.stat_result] | str:
        """The content of the file at this path, or why there is none."""
        return self._final.get(path, "gone")

    def _keeps(self, path: bytes, *, saved: bytes | None = None) -> bool:
        """Whether to store this file; `saved`: the copy that the tracer made of it."""
        return self._store_content and not self._excluded(path, saved=saved)

    def _excluded(self, path: bytes, *, saved: bytes | None = None) -> bool:
        def open_file() -> int:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
            return open_readonly(saved) if saved else self.files.open(path, flags)

        return self._is_excluded(os.fsdecode(path), open_file)
