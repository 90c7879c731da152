"""Executions that the server does not have yet: an empty file for each, `.clew/unsent/UID`.

The file is created before the command starts and deleted when the server has confirmed that it
has everything: whenever this process is killed, the next one knows what to send. The sender locks
the file, so that two processes do not send the same execution.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clew.documents.ids import Uid
from clew.project_directory import ProjectDirectory


def mark_unsent(directory: ProjectDirectory, uid: Uid) -> None:
    """Mark an execution as unsent."""
    directory.unsent.mkdir(mode=0o700, exist_ok=True)
    (directory.unsent / uid).touch()


def list_unsent(directory: ProjectDirectory) -> list[Uid]:
    """The uids of unsent executions, oldest first."""
    entries = []
    for path in directory.unsent.glob("*"):
        with suppress(FileNotFoundError):  # another process has just sent it
            entries.append((path.stat().st_mtime_ns, Uid(path.name)))
    return [name for _, name in sorted(entries)]


@contextmanager
def claim(directory: ProjectDirectory, uid: Uid, *, wait: float) -> Iterator[Path | None]:
    """Lock the file of an execution to send it. None: another process has sent it, or is still
    sending it after `wait` seconds."""
    path = directory.unsent / uid
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield path if _try_lock(descriptor, wait) and os.fstat(descriptor).st_nlink else None
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, wait: float) -> bool:
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
