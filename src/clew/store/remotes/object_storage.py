"""Storage of named objects, each written completely or not at all; and a directory as such.

That is all a remote needs, so a directory on a shared disk serves as well as a bucket. Objects are
never changed and never deleted; an object that is put again holds the same.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from clew.errors import ClewError, Damaged, Full, NotAllowed, UsageError
from clew.store.errors import from_os
from clew.store.leases import abandoned, create_locked
from clew.store.open_store import sync_directory

DIRECTORIES = ("packs", "tables", "executions")
AGAIN = "try again: what has arrived is not sent again"


class Place(Protocol):
    """Objects by name, such as `packs/NAME`. May be used by several threads at once."""

    url: str

    def make(self) -> None:
        """Prepare for objects to be put; nothing that is there changes."""

    def tops(self) -> set[str]:
        """The first part of the names of all that is there."""

    def names(self, directory: str) -> list[str]:
        """The names of the objects in `directory`, without it."""

    def get(self, name: str, *, most: int) -> bytes | None:
        """The object; None when there is none of this name. Damaged when it has more than `most`
        bytes: a remote may be anybody's."""

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Parts of an object, by position and length. Damaged when it is missing or too short."""

    def put(self, name: str, data: bytes) -> None:
        """When this returns, the object is there for good."""


def place_of(url: str, options: Mapping[str, str]) -> Place:
    """The place that a user's `url` names; `options` are those of S3."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        return DirectoryStorage(url, Path(url).absolute())
    parts = urlsplit(url)
    if scheme == "file" and parts.netloc in ("", "localhost"):
        return DirectoryStorage(url, Path(unquote(parts.path)))
    if scheme == "s3" and parts.netloc:
        from clew.store.remotes.s3_bucket import Bucket  # late: loads a large library

        return Bucket(url, parts.netloc, parts.path.strip("/"), options)
    raise UsageError(f"{url} is no remote", hint="a directory, file:///path, or s3://bucket/prefix")


class DirectoryStorage:
    """A remote in a directory."""

    def __init__(self, url: str, path: Path) -> None:
        self.url = url
        self._path = path

    def make(self) -> None:
        with self._errors("make a remote in"):
            self._path.mkdir(parents=True, exist_ok=True)
            for name in DIRECTORIES:
                directory = self._path / name
                directory.mkdir(exist_ok=True)
                for draft in directory.glob(".*.part"):  # of one who was killed
                    if abandoned(draft):
                        draft.unlink(missing_ok=True)
            sync_directory(self._path)

    def tops(self) -> set[str]:
        with self._errors("read"):
            try:
                return {name for name in os.listdir(self._path) if name[0] != "."}
            except FileNotFoundError:
                return set()

    def names(self, directory: str) -> list[str]:
        with self._errors("read"):
            try:
                return sorted(name for name in os.listdir(self._path / directory) if name[0] != ".")
            except FileNotFoundError:
                return []

    def get(self, name: str, *, most: int) -> bytes | None:
        with self._errors("read"):
            try:
                with self._open(name) as file:
                    data = file.read(min(most, os.fstat(file.fileno()).st_size) + 1)
            except FileNotFoundError:
                return None
        if len(data) > most:
            raise spoilt(self.url, name)
        return data

    def _open(self, name: str) -> BinaryIO:
        """A regular file: opening a pipe might block forever."""
        descriptor = os.open(self._path / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise spoilt(self.url, name)
        return os.fdopen(descriptor, "rb")

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        found: list[bytes] = []
        with self._errors("read"):
            try:
                with self._open(name) as file:
                    for position, length in ranges:
                        file.seek(position)
                        found.append(file.read(length))
            except FileNotFoundError:
                raise missing(self.url, name) from None
        if [len(data) for data in found] != [length for _, length in ranges]:
            raise spoilt(self.url, name)
        return found

    def put(self, name: str, data: bytes) -> None:
        target = self._path / name
        with self._errors("write to"):
            descriptor, draft = create_locked(target.parent, ".*.part")
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(descriptor, left) :]
                os.fsync(descriptor)
                draft.rename(target)
            except BaseException:
                with contextlib.suppress(OSError):
                    draft.unlink(missing_ok=True)
                raise
            finally:
                os.close(descriptor)
            sync_directory(target.parent)

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            said = from_os(error, doing=f"{doing} the remote {self.url}")
            if isinstance(said, Full):
                said.hint = f"make room there, and {AGAIN}"
            elif not isinstance(said, NotAllowed):
                said.hint = f"when it is back, {AGAIN}"
            raise said from error


REPAIR = "clew push it there again by its id, from a project that has it"


def missing(url: str, name: str) -> ClewError:
    return Damaged(f"the remote {url} is damaged: {name} is missing", hint=REPAIR)


def spoilt(url: str, name: str) -> Damaged:
    """An object that is not what its name or its table says."""
    return Damaged(
        f"the remote {url} is damaged: {name} is not what it says",
        hint=f"delete {name} there, then {REPAIR}",
    )
