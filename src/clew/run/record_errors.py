"""What keeps an execution from being recorded, or its record from being whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from clew.disk_reserve import NO_ROOM, is_full
from clew.errors import (
    MAKE_ROOM,
    CannotExecute,
    ClewError,
    Full,
    NoSuchCommand,
    RecordingFailed,
    UsageError,
)
from clew.project_directory import Folder
from clew.prov.events import AnyEvent, Content, Looked
from clew.store import Store
from clew.witness.syscalls.trace_format import AnyRecord, Exit, Spawn


@contextlib.contextmanager
def fail_before_start(folder: Folder) -> Iterator[None]:
    """Whatever keeps us from recording is our own failure, and the command is not started."""
    try:
        yield
    except (UsageError, RecordingFailed):
        raise
    except ClewError as error:
        raise RecordingFailed(f"cannot record: {error.message}", hint=error.hint) from error
    except OSError as error:
        raise RecordingFailed(
            f"cannot record in {folder.path}: {error.strerror}",
            hint=MAKE_ROOM
            if error.errno in NO_ROOM
            else "check the permissions and the free space of that folder",
        ) from error


def cannot_start(program: str, status: int) -> ClewError:
    if status == 127:
        return NoSuchCommand(f"no such command: {program}", hint=f"is {program} on the PATH?")
    if status == 126:
        return CannotExecute(f"cannot execute {program}", hint=f"chmod +x {program}")
    return RecordingFailed(f"{program} could not be started", hint="see the message above")


def as_clew_error(error: Exception) -> ClewError:
    """What went wrong after the command's end, in the words of a user."""
    if isinstance(error, ClewError):
        return error
    text = (error.strerror if isinstance(error, OSError) else None) or f"{error!r}"
    return RecordingFailed(f"the record could not be completed: {text}", hint="clew fsck")


def disk_full(place: Path) -> ClewError | None:
    """What to say when something failed there, if it is that the disk is full."""
    return Full(f"no space was left in {place}", hint=MAKE_ROOM) if is_full(place) else None


def is_complete(trace: list[AnyRecord]) -> bool:
    """Whether the end of every process that began was seen: the tracer waits for them all."""
    born = sum(isinstance(record, Spawn) for record in trace)
    return 0 < born == sum(isinstance(record, Exit) for record in trace)


def correct_stored(events: list[AnyEvent], store: Store) -> list[AnyEvent]:
    """After a failed write only what is there by now is claimed; digests are facts all the same."""

    def there(digest: str) -> bool:
        try:
            return store.has(digest)
        except ClewError:
            return False

    def honest(event: AnyEvent) -> AnyEvent:
        if isinstance(event, Content):
            return msgspec.structs.replace(event, stored=event.stored and there(event.digest))
        if isinstance(event, Looked) and event.kind == "listing" and not there(event.answer):
            return msgspec.structs.replace(event, answer="")
        return event

    return [honest(event) for event in events]


def file_identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
