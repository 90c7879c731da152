"""SpoolDirectory directories of executions, and the locks that show which executions still run.

The recorder holds the lock of its execution. The kernel releases the lock however the recorder
dies, so a killed execution shows as broken at once and no process id is ever trusted. A spool
directory gets its name only after its lock is held: an unlocked one belongs to a dead recorder.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from clew.documents.ids import Uid
from clew.project_directory import ProjectDirectory
from clew.tree_removal import remove_tree

DRAFT = "."
"""Prefix of directories that belong to no execution yet."""
_CLAIM = "claim"


class SpoolDirectory:
    """The spool directory of a new execution, and its lock, until `close`."""

    def __init__(self, directory: ProjectDirectory, uid: Uid) -> None:
        self.path = directory.spool / uid
        self.needed = False
        """Whether the record must still be completed from it: `close` leaves it then."""
        self._lock = _create_locked(directory, uid)

    def close(self) -> None:
        if not self.needed:
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _create_locked(directory: ProjectDirectory, uid: Uid) -> int:
    """Create the spool directory; the descriptor holds its lock."""
    spool = directory.spool / uid
    while True:
        draft, descriptor = _create_draft(directory, uid)
        try:
            draft.rename(spool)
            if os.fstat(descriptor).st_nlink:
                return descriptor
            shutil.rmtree(spool, ignore_errors=True)
        except FileNotFoundError:
            pass
        os.close(descriptor)


@contextlib.contextmanager
def hold_scratch(directory: ProjectDirectory) -> Iterator[Path]:
    """Make a scratch directory and remove it after the body; recovery does that after a crash."""
    scratch, lock = _create_draft(directory, secrets.token_hex(8))
    try:
        yield scratch
    finally:
        remove_tree(scratch)
        os.close(lock)


def _create_draft(directory: ProjectDirectory, name: str) -> tuple[Path, int]:
    """Create a locked directory that belongs to no execution."""
    spool = directory.spool / f"{DRAFT}{name}"
    while True:
        spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(spool / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # recovery has just removed it
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return spool, descriptor
        os.close(descriptor)


def list_spools(directory: ProjectDirectory) -> list[Path]:
    """The spools of executions that run or were killed, and drafts, oldest first: recovery numbers
    executions in the order in which they started."""
    try:
        return sorted(directory.spool.iterdir(), key=_start_time)
    except (FileNotFoundError, PermissionError):  # no spool, or another user's
        return []


def _start_time(spool: Path) -> tuple[int, str]:
    try:
        return (spool / "lock").stat().st_mtime_ns, spool.name
    except OSError:  # just removed, or another user's
        return 0, spool.name


def list_killed(directory: ProjectDirectory) -> list[Path]:
    """The spools of killed executions, whose records are still incomplete."""
    found = (spool for spool in list_spools(directory) if not spool.name.startswith(DRAFT))
    return [spool for spool in found if not _is_locked(spool)]


def is_alive(directory: ProjectDirectory, uid: Uid) -> bool:
    """Whether the recorder of this execution still runs."""
    return _is_locked(directory.spool / uid)


def _is_locked(spool: Path) -> bool:
    try:
        descriptor = os.open(spool / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # A shared lock: two processes that check at once must not see each other as the recorder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def claim_killed(spool: Path, *, wait: bool = False) -> int | None:
    """Lock the spool of a killed execution to complete its record. None if the execution runs, is
    gone, belongs to another user, or another process completes it.

    This is a second lock: the execution's own stays free, so that it still shows as killed. A
    draft is claimed by its own lock: a process that is about to take it waits, then finds it
    gone."""
    if _is_locked(spool):
        return None
    name = "lock" if spool.name.startswith(DRAFT) else _CLAIM
    try:
        descriptor = os.open(spool / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM):
            return None  # gone, or another user's
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(descriptor)
        return None
    if not os.fstat(descriptor).st_nlink:  # another process has just completed it
        os.close(descriptor)
        return None
    return descriptor
