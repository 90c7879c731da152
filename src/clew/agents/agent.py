"""Run a witness and the delivery of what it sees, until a signal or the end of its input.

The witness runs in the calling thread, the sender in another. At the end everything in the spool is
sent once more; what cannot be sent stays there for the next start. A signal limits the time for
this: while a node agent waits for a server that hangs, nobody watches the containers of its node.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from clew import project_directory
from clew.agents.destinations import Destination, ProjectDestination, ServerDestination
from clew.agents.sender import Sender
from clew.agents.spool import Spool
from clew.api.project_context import ProjectState
from clew.errors import Busy
from clew.settings import Settings

_LOG = logging.getLogger("clew.agents")
LAST_SECONDS = 5.0
"""For an agent whose spool outlives it: how long it may go on sending after a signal."""


class Witness(Protocol):
    """Observes, and appends to a spool."""

    def run(self, stopping: threading.Event) -> None:
        """Observe until `stopping` is set or the input has ended."""


def run_agent(
    witness: Witness,
    spool: Spool,
    open_destination: Callable[[], Destination],
    *,
    last_seconds: float | None = None,
) -> Sender:
    """Run the witness to its end, and the sender beside it; returns the sender with its counts.
    `last_seconds`: how long the sender may go on after a signal; None: until its grace period ends.
    """
    sending_ends = threading.Event()
    senders: list[Sender] = []
    failures: list[BaseException] = []

    def send() -> None:
        try:  # a database connection belongs to the thread that opens it
            destination = open_destination()
            try:
                senders.append(Sender(spool, destination))
                senders[0].run(sending_ends)
            finally:
                destination.close()
        except BaseException as error:
            failures.append(error)
            stopping.set()

    with _signals() as stopping:
        thread = threading.Thread(target=send, name="clew-sender", daemon=True)
        thread.start()
        try:
            witness.run(stopping)
        finally:
            sending_ends.set()
            spool.wake()
            thread.join(last_seconds if stopping.is_set() else None)
    if failures:
        raise failures[0]
    if not senders:
        raise Busy("the destination could not be opened in time", hint="the spool is kept")
    if thread.is_alive():
        _LOG.warning("no answer yet: %d batches stay in the spool", len(spool.list_batches()))
    return senders[0]


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """An event that is set by SIGTERM or SIGINT."""
    stopping = threading.Event()

    def stop(*_: object) -> None:
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def find_destination(settings: Settings) -> Callable[[], Destination]:
    """The server of CLEW_SERVER, else the project that contains the current directory."""
    if settings.server is not None:
        directory = project_directory.find_here(settings)
        token = None if directory is None else directory.token
        return lambda: ServerDestination(settings, token)
    found = project_directory.find(Path.cwd(), settings)
    return lambda: ProjectDestination(ProjectState(found, settings))


def state_directory(settings: Settings, name: str) -> Path:
    """Where an agent keeps its spool and checkpoint, if the user names no other place."""
    if settings.server is None:
        return project_directory.find(Path.cwd(), settings).path / "agents" / name
    return settings.state / "agents" / name
