"""A checkout: the files that an execution found, in a directory where users edit them.

A state file in the directory says what was checked out. A checkout contains what users edit (data,
configuration, source); files of packages and the system, and links, stay in the record and are
added again by a commit. Files from outside the working directory are in `_outside`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import UNSET

from clew.atomic_file import write_atomically
from clew.documents.files.checkouts import CheckoutFile
from clew.documents.ids import Digest, ExecutionId, Uid
from clew.errors import ClewError, Damaged, NotFound
from clew.project_directory import CHECKOUT, NAME
from clew.prov.file_classes import classify
from clew.prov.locators import path_json, path_of
from clew.prov.queries.execution_record import ExecutionRecord
from clew.replay.sandbox.initial_files import Entry, InitialFiles
from clew.safe_path import escape_names, unescape_names
from clew.store.errors import from_os

MODE_BITS = 0o777
"""The mode bits that are written and compared: no record makes a set-uid program."""
OUTSIDE_DIRECTORY = b"_outside"
"""Holds files from outside the working directory, by their absolute paths."""
STATE_FILE = CHECKOUT.encode()
RESERVED_NAMES = (STATE_FILE, NAME.encode())
"""Names in a checkout that are never an execution's files."""


def checkout_path(path: bytes, cwd: str) -> bytes:
    """The path in a checkout of an absolute path: relative to the working directory, or in
    OUTSIDE_DIRECTORY. Names that would make a directory a project or a repository are escaped."""
    inside = os.fsencode(cwd).rstrip(b"/") + b"/"
    relative = path.removeprefix(inside)
    if path.startswith(inside) and relative.split(b"/", 1)[0] != OUTSIDE_DIRECTORY:
        return escape_names(relative)
    return OUTSIDE_DIRECTORY + escape_names(path)


def original_path(relative: bytes, cwd: str) -> bytes:
    """The absolute path of a path in a checkout."""
    if relative.startswith(OUTSIDE_DIRECTORY + b"/"):
        return unescape_names(relative.removeprefix(OUTSIDE_DIRECTORY))
    return os.path.join(os.fsencode(cwd), unescape_names(relative))


FORMAT = 1
CHECKED_OUT_CLASSES = ("data", "configuration", "source")
"""The classes of files that are checked out."""


@dataclass(frozen=True)
class TrackedFile:
    """One file of a checkout, as it was checked out or last committed."""

    place: bytes
    """Relative to the checkout."""
    path: bytes
    """The path where the execution found it."""
    digest: Digest
    mode: int
    size: int
    mtime: int
    link: bool = False
    """A symbolic link, whose content is its target."""

    def as_json(self) -> dict[str, Any]:
        """The form in the state file: paths are text, with surrogate escapes if not UTF-8."""
        return {**asdict(self), "place": os.fsdecode(self.place), "path": os.fsdecode(self.path)}

    @classmethod
    def read(cls, document: dict[str, Any]) -> TrackedFile:
        place, path = os.fsencode(document["place"]), os.fsencode(document["path"])
        return cls(**{**document, "place": place, "path": path})

    def describe(self) -> CheckoutFile:
        where = path_json(self.path)
        return CheckoutFile(
            **path_json(self.place),
            original=where["path"],
            original_b64=where.get("path_b64", UNSET),
        )


@dataclass(frozen=True)
class Checkout:
    """The execution that a directory is a checkout of, and its files."""

    directory: Path
    project: Uid
    root: str
    """The path of the project, to find it from inside the checkout."""
    execution: Uid
    id: ExecutionId
    cwd: str
    files: tuple[TrackedFile, ...]

    def of(self, directory: Path) -> Checkout:
        """The same in another directory."""
        return replace(self, directory=directory)

    def at(self, execution: Uid, id: ExecutionId, files: Iterable[TrackedFile]) -> Checkout:  # noqa: A002
        """The same directory, as a checkout of another execution."""
        return replace(self, execution=execution, id=id, files=tuple(files))

    def write(self) -> None:
        """Replace the state file atomically."""
        fields = asdict(self) | {"format": FORMAT}
        fields["files"] = [kept.as_json() for kept in self.files]
        del fields["directory"]
        state = self.directory / os.fsdecode(STATE_FILE)
        try:
            write_atomically(state, json.dumps(fields, indent=1).encode(), mode=0o666, sync=True)
        except OSError as error:
            raise from_os(error, doing=f"write {state}") from error


def read_checkout(directory: Path) -> Checkout | None:
    """The checkout in exactly this directory; None if it is not a checkout."""
    state = directory / os.fsdecode(STATE_FILE)
    try:
        fields = json.loads(state.read_text())
        if fields.pop("format") > FORMAT:
            raise ClewError(f"{state} was written by a newer version of Clew", hint="use that one")
        files = tuple(map(TrackedFile.read, fields.pop("files")))
        return Checkout(directory=directory, files=files, **fields)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise from_os(error, doing=f"read {state}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(
            f"{state} cannot be read: {error}", hint="check out again, to another directory"
        ) from error


def find_enclosing(start: Path) -> Checkout | None:
    """The checkout that contains `start`, if any."""
    checkouts = (read_checkout(directory) for directory in (start, *start.parents))
    return next((checkout for checkout in checkouts if checkout is not None), None)


def find_checkout(start: Path) -> Checkout:
    """The checkout that contains `start`; raises NotFound."""
    checkout = find_enclosing(start)
    if checkout is None:
        raise NotFound(
            f"{start} is not in a checkout", hint="clew checkout ID makes one; cd there, or name it"
        )
    return checkout


def select_files(record: ExecutionRecord, initial_files: InitialFiles) -> dict[bytes, Entry]:
    """The files that a checkout of this execution contains, by path."""
    packages = {path_of(v.locator): v.package for v in record.versions.values() if v.package}
    return {
        path: entry
        for path, entry in initial_files.entries.items()
        if entry.kind == "file"
        and classify(path, packages.get(path), executable=bool(entry.mode & 0o111))
        in CHECKED_OUT_CLASSES
    }


def list_files(record: ExecutionRecord, initial_files: InitialFiles) -> Iterator[TrackedFile]:
    """The files that a checkout of this execution contains, with their paths in it."""
    cwd = record.itself.cwd or "/"
    for path, entry in sorted(select_files(record, initial_files).items()):
        if os.path.normpath(path) != path:  # from a record that was made elsewhere, with intent
            raise Damaged(f"{os.fsdecode(path)} is not a normalised path", hint="clew fsck")
        mode = entry.mode & MODE_BITS
        yield TrackedFile(
            checkout_path(path, cwd), path, entry.digest, mode, entry.size, entry.mtime
        )
