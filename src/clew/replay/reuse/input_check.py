"""Check that the recorded dependencies of a subtree still hold.

Contents, modes and names must be the same, and so must the times of files that the execution found.
Files that the execution made itself have new times in every repeat: of these only the order counts,
as far as the subtree looked at it. The answer is the first difference, as a sentence. Nothing is
changed.
"""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Protocol

from clew.documents.ids import Digest
from clew.prov.locators import path_of
from clew.replay.reuse.subtree import Dependency, Subtree


class CurrentFiles(Protocol):
    """The files as they are now."""

    def resolve_directory(self, path: bytes) -> bytes:
        """Resolve all links but the last path component."""

    def lstat(self, path: bytes) -> os.stat_result:
        """The status of a resolved path."""

    def stat(self, path: bytes) -> os.stat_result:
        """The status, with links followed."""

    def link(self, path: bytes) -> bytes | None: ...

    def names(self, path: bytes) -> set[bytes] | None: ...

    def digest(self, path: bytes, status: os.stat_result) -> str | None: ...

    def found(self, status: os.stat_result) -> bool:
        """Whether the execution found the file in this state and has not changed it."""


@dataclass
class InputCheck:
    """Compares the dependencies of one subtree with the current files."""

    subtree: Subtree
    files: CurrentFiles
    names: Callable[[Digest], list[bytes]]
    """Reads a stored directory listing by its digest."""
    before: Callable[[bytes, int], set[bytes]] | None
    """The names that the execution knew in a directory at a time; None if the directory may hold
    names that the execution never accessed."""
    times: dict[int, int] = field(default_factory=dict)
    """Recorded modification times and what they are now."""

    @cached_property
    def _links(self) -> set[bytes]:
        """Paths that were links when recorded."""
        return {
            dependency.path for dependency in self.subtree.dependencies if dependency.kind == "link"
        }

    def find_difference(self) -> str | None:
        """The first dependency that does not hold now; None if all hold."""
        checked: set[tuple[str, bytes, str, str]] = set()
        for dependency in self.subtree.dependencies:
            digest = dependency.version.digest if dependency.version else None
            key = (dependency.kind, dependency.path, dependency.answer, digest or "")
            if key in checked and not _is_directory(dependency):
                continue
            checked.add(key)
            why = self._difference(dependency)
            if why is not None:
                return why
        return self._disorder()

    def _difference(self, dependency: Dependency) -> str | None:
        path = self.files.resolve_directory(dependency.path)
        if path != dependency.path and self.subtree.changed_before(path, dependency.at):
            return None
        name = self._name(dependency.path)
        if dependency.kind == "bytes":
            return self._bytes(dependency, path, name)
        if dependency.kind == "link":
            target = path_of(f"file:///{dependency.answer}") or b"/"
            same = self.files.link(path) == target[1:]
            return None if same else f"the link {name} points elsewhere"
        if dependency.kind in ("listing", "empty"):
            then = (
                set(self.names(Digest(dependency.answer))) - {b""} if dependency.answer else set()
            )
            now = self._names_now(path, dependency.at)
            return None if now == then else _names_difference(name, then, now)
        try:
            status = (
                self.files.lstat(path) if _is_link(dependency) else self.files.stat(dependency.path)
            )
        except OSError as error:
            return _absence_difference(dependency, error, name)
        return self._there(dependency, path, name, status)

    def _name(self, path: bytes) -> str:
        """The path relative to the working directory."""
        cwd = os.fsencode(self.subtree.root.cwd or "/").rstrip(b"/") + b"/"
        return path.removeprefix(cwd).decode(errors="replace")

    # -- bytes

    def _bytes(self, dependency: Dependency, path: bytes, name: str) -> str | None:
        version = dependency.version
        assert version is not None
        try:
            status = self.files.lstat(path)
        except OSError:
            return f"{name} is gone"
        if stat.S_ISLNK(status.st_mode) and stat.S_ISLNK(version.mode or 0):
            return None  # where it leads is a dependency of its own
        if (status.st_mode, status.st_size) != (version.mode, version.size):
            return f"{name} changed"
        if version.found and status.st_mtime_ns != version.mtime:
            return f"{name} changed"
        return None if self.files.digest(path, status) == version.digest else f"{name} changed"

    # -- looks

    def _there(
        self, dependency: Dependency, path: bytes, name: str, status: os.stat_result
    ) -> str | None:
        if dependency.kind == "absent":
            error, _, permissions = dependency.answer.partition(" ")
            denied = error == "EACCES" and permissions and not _permits(status, permissions)
            return None if denied else f"{name} exists now"
        if dependency.kind == "present":
            return self._present(dependency.answer, path, name, status)
        if dependency.kind == "times":
            return self._times(dependency, path, name, status)
        return f"its look at {name} cannot be checked"

    def _present(self, answer: str, path: bytes, name: str, status: os.stat_result) -> str | None:
        if answer == "plain":
            return None if self.files.link(path) is None else f"{name} is a link now"
        same = (
            int(answer, 8) == status.st_mode if answer[:1].isdigit() else _permits(status, answer)
        )
        return None if same else f"the mode of {name} changed"

    def _times(
        self, dependency: Dependency, path: bytes, name: str, status: os.stat_result
    ) -> str | None:
        mode, size, mtime = dependency.answer.split(" ")
        if int(mode, 8) != status.st_mode:
            return f"the mode of {name} changed"
        if stat.S_ISDIR(status.st_mode):
            if self.files.link(path) is not None and dependency.path not in self._links:
                return f"{name} is a link now"
            return self._directory(dependency, path, name, same=status.st_mtime_ns == int(mtime))
        if stat.S_ISLNK(status.st_mode):  # programs do not use the time of a link
            return None if status.st_size == int(size) else f"the link {name} points elsewhere"
        same = status.st_mtime_ns == int(mtime) or self._made_again(path, dependency.at, status)
        if status.st_size != int(size) or not same:
            return f"{name} changed"
        return self._timed(int(mtime), status.st_mtime_ns, name)

    def _made_again(self, path: bytes, at: int, status: os.stat_result) -> bool:
        """Whether the execution made this file then, and made the same content now."""
        version = self.subtree.index.version_at(path, at)
        if version is None or version.digest is None or self.files.found(status):
            return False
        return self.files.digest(path, status) == version.digest

    def _timed(self, then: int, now: int, name: str) -> str | None:
        known = self.times.setdefault(then, now)
        return None if known == now else f"the time of {name} changed"

    def _disorder(self) -> str | None:
        """Times that changed must have kept their order."""
        line = [now for _, now in sorted(self.times.items())]
        kept = all(a < b for a, b in pairwise(line))
        return None if kept else "files were created in another order"

    # -- directories

    def _directory(
        self, dependency: Dependency, path: bytes, name: str, *, same: bool
    ) -> str | None:
        """A directory's time only shows that names came or went, so compare the names instead."""
        mine = self.subtree.changes_in.get(path, ())
        if same or any(change.at < dependency.at for change in mine):
            return None
        if self.before is None:
            listed = any(
                n.kind == "listing" and n.path == dependency.path for n in self.subtree.dependencies
            )
            return None if listed else f"entries were added to or removed from {name}"
        then, now = self.before(path, dependency.at), self._names_now(path, dependency.at)
        return None if then == now else _names_difference(name, then, now)

    def _names_now(self, directory: bytes, at: int) -> set[bytes] | None:
        """The names in a directory at this point of the subtree, if it repeats what it did then."""
        names = self.files.names(directory)
        if names is None:
            return None
        for change in self.subtree.changes_in.get(directory, ()):
            if change.at < at:
                name = os.path.basename(change.path)
                names = names | {name} if change.there else names - {name}
        return names


def _names_difference(directory: str, then: set[bytes], now: set[bytes] | None) -> str:
    message = f"the names in {directory} changed"
    for names, what in (((now or set()) - then, "is new"), (then - (now or set()), "is gone")):
        if names:
            return f"{message}: {min(names).decode(errors='replace')} {what}"
    return message


def _is_link(dependency: Dependency) -> bool:
    return dependency.kind == "times" and stat.S_ISLNK(int(dependency.answer.split(" ")[0], 8))


def _is_directory(dependency: Dependency) -> bool:
    """Whether the answer depends on what the subtree itself has done by then."""
    if dependency.kind == "times":
        return stat.S_ISDIR(int(dependency.answer.split(" ")[0], 8))
    return dependency.kind in ("listing", "empty")


def _absence_difference(dependency: Dependency, error: OSError, name: str) -> str | None:
    if dependency.kind != "absent":
        return f"{name} is gone"
    same = errno.errorcode.get(error.errno or 0) == dependency.answer.split(" ")[0]
    return None if same else f"{name} can no longer be read"


def _permits(status: os.stat_result, wanted: str) -> bool:
    """Whether the owner has the permissions; root may always read and write."""
    mode = status.st_mode
    if "x" in wanted and not mode & 0o111:
        return False
    if os.geteuid() == 0:
        return True
    return not ("r" in wanted and not mode & 0o400) and not ("w" in wanted and not mode & 0o200)
