# Paths are bytes here, which pathlib does not take:
# ruff: noqa: PTH101, PTH211
"""Cache whole files and file trees for sandboxes.

`files/` holds one file per content, mode and time, restored from the store once; `roots/` holds
file trees made of hard links to them. A sandbox uses a root as the read-only lower layer of an
overlay, so it cannot change it. The cache can be removed when no repeat runs: it is rebuilt from
the store, and `gc` removes it. A root is built under a temporary name and renamed, so it is
complete or absent.
"""

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clew.documents.ids import Digest
from clew.errors import ClewError, NoContent
from clew.replay.sandbox.initial_files import Entry, InitialFiles
from clew.safe_path import SafeDirectory
from clew.store import Store
from clew.store.errors import from_os
from clew.store.types import parse_digest
from clew.tree_removal import remove_tree

State = tuple[int, int, int, int]
"""Inode number, size, modification and change time: what tells that a file is as it was made."""


@dataclass(frozen=True)
class Root:
    """A read-only file tree."""

    path: Path
    states: dict[State, Digest]
    """The digest of each file in it, by the state of the file."""


@contextlib.contextmanager
def hold_cache(directory: Path) -> Iterator[None]:
    """Keep `clear_cache` from removing the cache while a repeat runs."""
    with _lock(directory) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield


def clear_cache(directory: Path, *, dry_run: bool) -> int:
    """Remove the cache unless a repeat uses it. Returns the number of bytes freed."""
    files = [path for path in (directory / "files").glob("*/*") if path.is_file()]
    freed = sum(path.stat().st_size for path in files)
    if dry_run or not freed:
        return freed
    with _lock(directory) as descriptor, contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in ("files", "roots"):
            remove_tree(directory / name)
        return freed
    return 0


@contextlib.contextmanager
def _lock(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class FileCache:
    """The cached files and roots of one project."""

    def __init__(self, directory: Path, store: Store, *, roots: Path | None = None) -> None:
        """`roots`: where to build roots that are only needed once."""
        self._files = directory / "files"
        self._roots = roots or directory / "roots"
        self._store = store

    def root(self, initial_files: InitialFiles) -> Root:
        """Return the root that has these files; build it unless it exists unchanged."""
        root = self._roots / initial_files.digest
        states = self._states(initial_files, root)
        if states is None:  # missing, or changed by another process
            remove_tree(root)
            self._build(initial_files, root)
            states = self._states(initial_files, root)
        if states is None:
            raise ClewError(
                f"{root} changes while Clew writes it", hint="is another program changing it?"
            )
        return Root(root, states)

    def _states(self, initial_files: InitialFiles, root: Path) -> dict[State, Digest] | None:
        """The digest of every file by its state; None if a file is not as it was made."""
        states: dict[State, Digest] = {}
        for path, entry in initial_files.entries.items():
            if entry.kind == "file":
                state = _state(root, path)
                if state is None or state[1:3] != (entry.size, entry.mtime):
                    return None
                states[state] = entry.digest
        return states

    def file(self, entry: Entry) -> Path:
        """Return a file with this content, mode and time, to hard-link to and never to write."""
        digest = parse_digest(entry.digest)
        if digest is None:
            raise NoContent(f"{entry.digest[:100]} is not a content id")
        name = digest.hex()
        directory = self._files / name[:2]
        path = directory / f"{name}-{entry.mode:o}-{entry.mtime}"
        with contextlib.suppress(OSError):
            status = path.stat()
            if (status.st_size, status.st_mtime_ns) == (entry.size, entry.mtime):
                return path
        self._files.mkdir(mode=0o700, parents=True, exist_ok=True)  # it may hold set-uid programs
        directory.mkdir(exist_ok=True)
        self._store.restore(entry.digest, path, mode=entry.mode, mtime=entry.mtime, sync=False)
        return path

    def _build(self, initial_files: InitialFiles, root: Path) -> None:
        draft = self._roots / f".{secrets.token_hex(8)}"
        try:
            self._roots.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.mkdir()
            places = SafeDirectory(draft)
            linked: set[Entry] = set()
            directories: list[tuple[bytes, Entry]] = []
            for path, entry in sorted(initial_files.entries.items()):
                if entry.kind == "directory":
                    directories.append((places.make_directory(path[1:]), entry))
                else:
                    self._make(places.join(path[1:]), entry, linked)
            for directory, entry in reversed(
                directories
            ):  # last, from the innermost: filling changes it
                os.utime(directory, ns=(entry.mtime, entry.mtime))
                os.chmod(directory, entry.mode | 0o700)
            _publish(draft, root)
        except OSError as error:
            raise from_os(error, doing=f"write files to {self._roots}") from error
        finally:
            remove_tree(draft)

    def _make(self, path: bytes, entry: Entry, linked: set[Entry]) -> None:
        if entry.kind == "link":
            os.symlink(entry.target, path)
            os.utime(path, ns=(entry.mtime, entry.mtime), follow_symlinks=False)
        elif entry.kind == "stub":
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.ftruncate(fd, entry.size)
            os.fchmod(fd, entry.mode)
            os.utime(fd, ns=(entry.mtime, entry.mtime))
            os.close(fd)
        elif entry in linked or not self._link(path, entry):
            # two files that are alike must not turn into one file with two names
            self._store.restore(entry.digest, path, mode=entry.mode, mtime=entry.mtime, sync=False)
        linked.add(entry)

    def _link(self, path: bytes, entry: Entry) -> bool:
        try:
            os.link(self.file(entry), path)
        except OSError as error:
            if error.errno not in (errno.EMLINK, errno.EPERM, errno.EXDEV):
                raise
            return False
        return True


def _publish(draft: Path, root: Path) -> None:
    try:
        draft.rename(root)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another process was faster
            raise


def _state(root: Path, path: bytes) -> State | None:
    try:
        status = os.lstat(os.fsencode(root) + path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
