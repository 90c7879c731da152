"""Storage of named objects for remotes, and its implementation in a directory.

Each object is written completely or not at all, and never changed or deleted.
"""

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
from clew.store.leases import create_locked, is_abandoned
from clew.store.store_directory import sync_directory

DIRECTORIES = ("packs", "tables", "executions")
TRY_AGAIN = "try again: what has arrived is not sent again"


class ObjectStorage(Protocol):
    """Objects by name, such as `packs/NAME`. May be used by several threads at once."""

    url: str

    def make(self) -> None:
        """Prepare the storage for objects; existing ones stay."""

    def top_level_names(self) -> set[str]:
        """The first parts of all names."""

    def names(self, directory: str) -> list[str]:
        """The names of the objects in `directory`, relative to it."""

    def get(self, name: str, *, most: int) -> bytes | None:
        """The object, or None. Damaged if it has more than `most` bytes: a remote is untrusted."""

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Parts of an object, by position and length. Damaged if it is missing or too short."""

    def put(self, name: str, data: bytes) -> None:
        """Store an object durably."""


def open_storage(url: str, options: Mapping[str, str]) -> ObjectStorage:
    """The storage at `url`; `options` are those of S3."""
    scheme, separator, _ = url.partition("://")
    if not separator and url.endswith(".zip") and not Path(url).is_dir():
        from clew.store.remotes.zip_file import ZipStorage  # late: few need it

        return ZipStorage(url, Path(url))
    if not separator:
        return DirectoryStorage(url, Path(url).absolute())
    parts = urlsplit(url)
    if scheme == "file" and parts.netloc in ("", "localhost"):
        return DirectoryStorage(url, Path(unquote(parts.path)))
    if scheme == "s3" and parts.netloc:
        from clew.store.remotes.s3_bucket import S3Storage  # late: loads a large library

        return S3Storage(url, parts.netloc, parts.path.strip("/"), options)
    raise UsageError(
        f"{url} is not a remote", hint="a directory, file:///path, or s3://bucket/prefix"
    )


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
                for draft in directory.glob(".*.part"):  # left by a killed process
                    if is_abandoned(draft):
                        draft.unlink(missing_ok=True)
            sync_directory(self._path)

    def top_level_names(self) -> set[str]:
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
            raise damaged_object(self.url, name)
        return data

    def _open(self, name: str) -> BinaryIO:
        """Open a regular file only: opening a pipe might block forever."""
        descriptor = os.open(self._path / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise damaged_object(self.url, name)
        return os.fdopen(descriptor, "rb")

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        parts: list[bytes] = []
        with self._errors("read"):
            try:
                with self._open(name) as file:
                    for position, length in ranges:
                        file.seek(position)
                        parts.append(file.read(length))
            except FileNotFoundError:
                raise missing_object(self.url, name) from None
        if [len(data) for data in parts] != [length for _, length in ranges]:
            raise damaged_object(self.url, name)
        return parts

    def put(self, name: str, data: bytes) -> None:
        target = self._path / name
        with self._errors("write to"):
            descriptor, draft = create_locked(target.parent, ".*.part")
            try:
                remaining = memoryview(data)
                while remaining:
                    remaining = remaining[os.write(descriptor, remaining) :]
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
            clew_error = from_os(error, doing=f"{doing} the remote {self.url}")
            if isinstance(clew_error, Full):
                clew_error.hint = f"free some space there, and {TRY_AGAIN}"
            elif not isinstance(clew_error, NotAllowed):
                clew_error.hint = f"when it is reachable again, {TRY_AGAIN}"
            raise clew_error from error


REPAIR = "clew push it there again by its id, from a project that has it"


def missing_object(url: str, name: str) -> ClewError:
    return Damaged(f"the remote {url} is damaged: {name} is missing", hint=REPAIR)


def damaged_object(url: str, name: str) -> Damaged:
    """The error for an object that does not match its name or its table."""
    return Damaged(
        f"the remote {url} is damaged: {name} does not match its digest",
        hint=f"delete {name} there, then {REPAIR}",
    )
