"""Executions that the server has not got yet: an empty file for each, `.clew/unsent/UID`.

The file is there before the command begins and goes when the server has said that all is there:
whenever this process is killed, the next one knows what is to be sent. Whoever sends holds a lock
on it, so that two do not send the same at once.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clew.project_directory import Folder


def mark_unsent(folder: Folder, uid: str) -> None:
    """This execution is to be sent."""
    folder.unsent.mkdir(mode=0o700, exist_ok=True)
    (folder.unsent / uid).touch()


def list_unsent(folder: Folder) -> list[str]:
    """Those that are to be sent, the oldest first."""
    found = []
    for path in folder.unsent.glob("*"):
        with suppress(FileNotFoundError):  # just sent by another
            found.append((path.stat().st_mtime_ns, path.name))
    return [name for _, name in sorted(found)]


@contextmanager
def claim(folder: Folder, uid: str, *, wait: float) -> Iterator[Path | None]:
    """The file of an execution, for the one who sends it; None: another process does, and has not
    ended within `wait` seconds, or did."""
    place = folder.unsent / uid
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield place if _try_lock(descriptor, wait) and os.fstat(descriptor).st_nlink else None
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
