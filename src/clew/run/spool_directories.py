"""Spool directories of executions, and the locks that show which executions still run.

The recorder holds the lock of its execution. The kernel releases the lock however the recorder
dies, so a killed execution shows as broken at once and no process id is ever trusted. A spool
directory gets its name only after its lock is held: an unlocked one belongs to a dead recorder.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from pathlib import Path

from clew.documents.ids import Uid
from clew.project_directory import ProjectDirectory

DRAFT = "."
"""Prefix of directories that belong to no execution yet."""
_CLAIM = "claim"
_MOVED = f".{os.urandom(8).hex()}-"
"""Prefix of directories that are being removed."""


class Spool:
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
        draft, descriptor = create_scratch(directory, uid)
        try:
            draft.rename(spool)
            if os.fstat(descriptor).st_nlink:
                return descriptor
            shutil.rmtree(spool, ignore_errors=True)
        except FileNotFoundError:
            pass
        os.close(descriptor)


def create_scratch(directory: ProjectDirectory, name: str) -> tuple[Path, int]:
    """Create a locked directory that belongs to no execution; recovery removes it after a crash."""
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


def remove_tree(spool: Path) -> None:
    """Remove a directory, whatever its permissions are; of a symbolic link, only the link.

    A command may have left directories deeper than the longest path. So each directory is moved to
    the top before it is emptied.
    """
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(os.lstat(spool).st_mode):
            spool.unlink()
            return
        top = os.open(spool, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _remove_contents(top)
        finally:
            os.close(top)
        spool.rmdir()


def _remove_contents(top: int) -> None:
    waiting = _remove_files(top)
    moved = 0
    while waiting:
        name = waiting.pop()
        with contextlib.suppress(OSError):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            directory = os.open(name, flags, dir_fd=top)
            try:
                for inner in _remove_files(directory):
                    moved += 1
                    to = f"{_MOVED}{moved}"
                    with contextlib.suppress(OSError):
                        os.rename(inner, to, src_dir_fd=directory, dst_dir_fd=top)
                        waiting.append(to)
            finally:
                os.close(directory)
            os.rmdir(name, dir_fd=top)


def _remove_files(directory: int) -> list[str]:
    """Remove all files, make the directories accessible, and return their names."""
    directories: list[str] = []
    with os.scandir(directory) as listed:
        entries = list(listed)
    for entry in entries:
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.name, 0o700, dir_fd=directory)
                directories.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=directory)
    return directories


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
