"""Find what changed in a checkout, by digest and mode.

A file in a state that the store knows is not read again, so a check costs one stat per file.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from blake3 import blake3
from msgspec import structs

from clew.documents.files import checkouts
from clew.documents.files.checkouts import ModifiedFile
from clew.documents.ids import Digest
from clew.errors import ClewError, NotFound
from clew.redaction import make_credential_check, open_readonly
from clew.replay.checkout.working_tree import (
    MODE_BITS,
    RESERVED_NAMES,
    STATE_FILE,
    Checkout,
    TrackedFile,
    original_path,
)
from clew.store import Store
from clew.store.errors import from_os


@dataclass(frozen=True)
class Changes:
    """The difference between a checkout's state and the files in its directory."""

    modified: tuple[tuple[TrackedFile, TrackedFile], ...]
    """Before and after; the digests are equal if only the mode changed."""
    added: tuple[TrackedFile, ...]
    deleted: tuple[TrackedFile, ...]

    def __bool__(self) -> bool:
        return bool(self.modified or self.added or self.deleted)

    @property
    def changed_paths(self) -> list[bytes]:
        after = [new for _, new in self.modified]
        return sorted(kept.place for kept in (*after, *self.added, *self.deleted))

    def describe(self) -> checkouts.Changes:
        return checkouts.Changes(
            modified=tuple(
                ModifiedFile(
                    **structs.asdict(new.describe()),
                    content=old.digest != new.digest,
                    mode=None if old.mode == new.mode else (_format_mode(old), _format_mode(new)),
                )
                for old, new in self.modified
            ),
            added=tuple(kept.describe() for kept in self.added),
            deleted=tuple(kept.describe() for kept in self.deleted),
        )


def _format_mode(kept: TrackedFile) -> str:
    return f"{kept.mode:04o}"


def find_changes(checkout: Checkout, now: dict[bytes, TrackedFile]) -> Changes:
    """Compare the state of a checkout with its files `now`."""
    before = {kept.place: kept for kept in checkout.files}
    pairs = ((before[relative], kept) for relative, kept in now.items() if relative in before)
    return Changes(
        modified=tuple((old, new) for old, new in pairs if _compared(old) != _compared(new)),
        added=tuple(kept for relative, kept in now.items() if relative not in before),
        deleted=tuple(kept for relative, kept in before.items() if relative not in now),
    )


def _compared(kept: TrackedFile) -> tuple[str, int, bool]:
    return kept.digest, kept.mode, kept.link


def scan_files(
    checkout: Checkout, store: Store, *, keep: bool = False, without: Iterable[bytes] = ()
) -> dict[bytes, TrackedFile]:
    """The files in the directory now, by relative path, except `without`; `keep` stores them."""
    top = os.fsencode(checkout.directory)
    left_out = set(without)
    statuses = {relative: status for relative, status in _walk(top) if relative not in left_out}
    regular = [relative for relative, status in statuses.items() if stat.S_ISREG(status.st_mode)]
    answers = store.put_files([os.path.join(top, relative) for relative in regular], keep=keep)
    now: dict[bytes, TrackedFile] = {}
    for relative, answer in zip(regular, answers, strict=True):
        if isinstance(answer, NotFound):
            continue  # gone since it was listed
        if isinstance(answer, ClewError):
            raise answer
        now[relative] = _tracked_file(
            relative, checkout.cwd, statuses[relative], answer.digest, answer.size
        )
    for relative in statuses.keys() - set(regular):
        target = os.readlink(os.path.join(top, relative))
        digest = Digest(f"blake3:{blake3(target).hexdigest()}")
        if keep:
            store.put_bytes(target)
        now[relative] = _tracked_file(
            relative, checkout.cwd, statuses[relative], digest, len(target), link=True
        )
    return dict(sorted(now.items()))


def find_added_credentials(checkout: Checkout, credentials: tuple[str, ...]) -> dict[bytes, bytes]:
    """Credential files that were added to the directory, with their paths in the sandbox. A commit
    skips them, because it stores its files."""
    is_credential = make_credential_check(credentials)
    top = os.fsencode(checkout.directory)
    known = {kept.place for kept in checkout.files}
    added = (relative for relative, _ in _walk(top) if relative not in known)
    return {
        relative: path
        for relative in added
        if is_credential(
            os.fsdecode(path := original_path(relative, checkout.cwd)),
            partial(open_readonly, os.path.join(top, relative)),
        )
    }


def _tracked_file(
    relative: bytes,
    cwd: str,
    status: os.stat_result,
    digest: Digest,
    size: int,
    *,
    link: bool = False,
) -> TrackedFile:
    mode = MODE_BITS if link else status.st_mode & MODE_BITS
    return TrackedFile(
        relative, original_path(relative, cwd), digest, mode, size, status.st_mtime_ns, link
    )


def _walk(top: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Every file and link below `top`, by its relative path."""
    waiting = [b""]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(os.path.join(top, directory)) as listed:
                for entry in listed:
                    relative = os.path.join(directory, entry.name)
                    if relative in RESERVED_NAMES or relative.startswith(STATE_FILE + b"."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(relative)
                    elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                        yield relative, entry.stat(follow_symlinks=False)
        except OSError as error:
            shown = os.fsdecode(os.path.join(top, directory))
            raise from_os(error, doing=f"read {shown}") from error
