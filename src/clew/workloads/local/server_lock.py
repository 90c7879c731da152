"""The lock of the one server that runs the notebooks of a project, and the address of that server.

The kernel releases the lock when the process ends, however it ends. Only the holder
of the lock writes the file: a new holder empties it first.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from clew.errors import Busy

_POLL_SECONDS = 0.05
_MAX_BYTES = 4096


class RunningServer(NamedTuple):
    address: str
    token_digest: str
    """So that another process can tell whether it knows the token."""


class ServerLock:
    """Held until it is closed, or the process ends. Children do not inherit it."""

    def __init__(self, path: Path) -> None:
        """Raises Busy if another server holds the lock."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise Busy(
                "another `clew up` already serves the notebooks of this project",
                hint="use the address that it printed, or end it first",
            ) from error
        os.ftruncate(self._descriptor, 0)

    def publish(self, server: RunningServer) -> None:
        """Tell other processes where this server is."""
        os.pwrite(self._descriptor, json.dumps(server._asdict()).encode(), 0)

    def withdraw(self) -> None:
        """Tell them that this server is ending: it no longer has an address."""
        os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        os.close(self._descriptor)


def find_running(
    path: Path, seconds: float, *, clock: Callable[[], float] = time.monotonic
) -> RunningServer | None:
    """The server that holds the lock. Waits for so long while it has no address, because it is
    starting or ending; None: it still has none, or has ended."""
    end = clock() + seconds
    while True:
        with suppress(OSError, ValueError, TypeError, KeyError), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None  # no server holds it
            except BlockingIOError:
                found = json.loads(file.read(_MAX_BYTES))
                return RunningServer(str(found["address"]), str(found["token_digest"]))
        if clock() > end:
            return None
        time.sleep(_POLL_SECONDS)
