"""Whether an execution is still running, decided by a lock its recorder holds.

The kernel lets go of the lock when the holder dies, however it dies: so a killed execution
shows as broken at the next look, and no process id is ever trusted. An execution's folder gets
its name only once its lock is held: whoever sees it unlocked sees a dead one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from pathlib import Path

from clew.project_directory import Folder

DRAFT = "."
"""What the names of folders begin with that no execution has yet."""
_CLAIM = "claim"
_MOVED = f".{os.urandom(8).hex()}-"
"""What the names of folders begin with that are being removed."""


def create_spool(folder: Folder, uid: str) -> int:
    """Make the folder of a new execution and take its lock, held until the returned descriptor
    is closed."""
    place = folder.spool / uid
    while True:
        draft, descriptor = create_scratch(folder, uid)
        try:
            draft.rename(place)
            if os.fstat(descriptor).st_nlink:
                return descriptor
            shutil.rmtree(place, ignore_errors=True)
        except FileNotFoundError:
            pass
        os.close(descriptor)


def create_scratch(folder: Folder, name: str) -> tuple[Path, int]:
    """A folder that belongs to no execution, and its lock: left by somebody dead, it is swept."""
    place = folder.spool / f"{DRAFT}{name}"
    while True:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # swept as a dead one's
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return place, descriptor
        os.close(descriptor)


def remove_tree(place: Path) -> None:
    """Remove a folder, also what its modes protect from its own owner; of a link, only itself.

    A command may have left folders so deep that no path leads to the innermost. So each folder is
    moved to the top before it is emptied.
    """
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            place.unlink()
            return
        top = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _remove_contents(top)
        finally:
            os.close(top)
        place.rmdir()


def _remove_contents(top: int) -> None:
    waiting = _remove_files(top)
    moved = 0
    while waiting:
        name = waiting.pop()
        with contextlib.suppress(OSError):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            folder = os.open(name, flags, dir_fd=top)
            try:
                for inner in _remove_files(folder):
                    moved += 1
                    to = f"{_MOVED}{moved}"
                    with contextlib.suppress(OSError):
                        os.rename(inner, to, src_dir_fd=folder, dst_dir_fd=top)
                        waiting.append(to)
            finally:
                os.close(folder)
            os.rmdir(name, dir_fd=top)


def _remove_files(folder: int) -> list[str]:
    """Remove what is no folder; the names of the folders, which can be opened then."""
    folders: list[str] = []
    with os.scandir(folder) as listed:
        entries = list(listed)
    for entry in entries:
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.name, 0o700, dir_fd=folder)
                folders.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=folder)
    return folders


def list_spools(folder: Folder) -> list[Path]:
    """The folders of executions that run or were killed, oldest first, and drafts of such folders:
    those that get their numbers at recovery get them in the order in which they began."""
    try:
        return sorted(folder.spool.iterdir(), key=_start_time)
    except (FileNotFoundError, PermissionError):  # no spool, or another user's
        return []


def _start_time(place: Path) -> tuple[int, str]:
    try:
        return (place / "lock").stat().st_mtime_ns, place.name
    except OSError:  # just removed, or not ours to look into
        return 0, place.name


def has_killed(folder: Folder) -> bool:
    """Whether an execution was killed and its record is still to be completed."""
    found = (place for place in list_spools(folder) if not place.name.startswith(DRAFT))
    return any(not _is_locked(place) for place in found)


def is_alive(folder: Folder, uid: str) -> bool:
    """Whether some process holds the lock of this execution."""
    return _is_locked(folder.spool / uid)


def _is_locked(place: Path) -> bool:
    try:
        descriptor = os.open(place / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared: two who look at once must not take each other for the recorder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def claim_killed(place: Path, *, wait: bool = False) -> int | None:
    """Lock what a killed execution left here, to complete its record; None when it runs, is gone,
    belongs to another user, or another process does it. The execution's own lock stays free, so
    that it shows as killed. A draft is claimed by its own lock: a process that is just about to
    take it waits, and then finds it gone."""
    if _is_locked(place):
        return None
    name = "lock" if place.name.startswith(DRAFT) else _CLAIM
    try:
        descriptor = os.open(place / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM):
            return None  # gone, or another user's
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(descriptor)
        return None
    if not os.fstat(descriptor).st_nlink:  # the one before us has settled it
        os.close(descriptor)
        return None
    return descriptor
