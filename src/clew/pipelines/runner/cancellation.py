"""Cancel a run: from another process by a file in the run's spool directory, or by a signal."""

import contextlib
import signal
import threading
from collections.abc import Iterator

from clew.documents.ids import Uid
from clew.project_directory import ProjectDirectory
from clew.run import spool_directories

_FILE = "cancel"


def request_cancel(directory: ProjectDirectory, uid: Uid) -> bool:
    """Cancel a run without waiting for its end; false if it does not run on this machine."""
    if not spool_directories.is_alive(directory, uid):
        return False
    with contextlib.suppress(FileNotFoundError):  # it has just ended
        (directory.spool / uid / _FILE).touch()
    return True


def is_cancel_requested(directory: ProjectDirectory, uid: Uid) -> bool:
    return (directory.spool / uid / _FILE).exists()


@contextlib.contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM too, so that the run stops its tasks and records that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
