"""Whether an execution is still running, decided by a lock its recorder holds.

The kernel lets go of the lock when the holder dies, however it dies: so a killed execution
shows as broken at the next look, and no process id is ever trusted.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from clew.folder import Folder


def _path(folder: Folder, uid: str) -> Path:
    return folder.spool / uid / "lock"


def hold(folder: Folder, uid: str) -> int:
    """Take the lock of a new execution; it is held until the returned descriptor is closed."""
    path = _path(folder, uid)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def alive(folder: Folder, uid: str) -> bool:
    """Whether some process holds the lock of this execution."""
    try:
        descriptor = os.open(_path(folder, uid), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
