"""Errors of recording: the command cannot start, or its record is incomplete."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from clew.disk_reserve import NO_ROOM, is_full
from clew.documents.ids import Digest, ExecutionId, Uid
from clew.errors import (
    MAKE_ROOM,
    CannotExecute,
    ClewError,
    Full,
    NoSuchCommand,
    RecordingFailed,
    UsageError,
)
from clew.project_directory import ProjectDirectory
from clew.prov.events import AnyEvent, Content, Looked
from clew.store import Store
from clew.witness.syscalls.trace_format import AnyRecord, Exit, Spawn


@contextlib.contextmanager
def fail_before_start(directory: ProjectDirectory) -> Iterator[None]:
    """Turn every error into `RecordingFailed`: the command is not started."""
    try:
        yield
    except (UsageError, RecordingFailed):
        raise
    except ClewError as error:
        raise RecordingFailed(f"cannot record: {error.message}", hint=error.hint) from error
    except OSError as error:
        raise RecordingFailed(
            f"cannot record in {directory.path}: {error.strerror}",
            hint=MAKE_ROOM
            if error.errno in NO_ROOM
            else "check the permissions and the free space of that directory",
        ) from error


def no_such_command_error(program: str) -> NoSuchCommand:
    by_path = "check that the file and its interpreter exist"
    hint = by_path if "/" in program else f"is {program} on the PATH?"
    return NoSuchCommand(f"no such command: {program}", hint=hint)


def cannot_start_error(program: str, status: int) -> ClewError:
    if status == 127:
        return no_such_command_error(program)
    if status == 126:
        return CannotExecute(f"cannot execute {program}", hint=f"chmod +x {program}")
    return RecordingFailed(f"{program} could not be started", hint="see the message above")


def as_clew_error(error: Exception) -> ClewError:
    """An error after the command ended, as an error for the user."""
    if isinstance(error, ClewError):
        return error
    text = (error.strerror if isinstance(error, OSError) else None) or f"{error!r}"
    return RecordingFailed(f"the record could not be completed: {text}", hint="clew fsck")


def disk_full_error(directory: Path) -> ClewError | None:
    """The error to report if the disk of this directory is full; else None."""
    return Full(f"no space was left in {directory}", hint=MAKE_ROOM) if is_full(directory) else None


def is_complete(trace: list[AnyRecord]) -> bool:
    """Whether the trace holds the end of every process: the tracer waits for all of them."""
    kinds = list(map(type, trace))  # a build leaves tens of thousands of records
    return 0 < kinds.count(Spawn) == kinds.count(Exit)


def check_tracer(status: int, trace: list[AnyRecord], execution: ExecutionId | Uid) -> None:
    """Fail if the tracer itself failed; `execution`: its id or uid, for the message."""
    if status < 0 or (status == 125 and not is_complete(trace)):
        how = f"was ended by signal {-status}" if status < 0 else "failed"
        raise RecordingFailed(
            f"the tracer {how}, and the command with it",
            hint=f"clew show {execution} shows what was recorded until then",
        )


def correct_stored(events: list[AnyEvent], store: Store) -> list[AnyEvent]:
    """After a failed write, claim as stored only what the store holds; digests stay."""

    def is_stored(digest: Digest) -> bool:
        try:
            return store.has(digest)
        except ClewError:
            return False

    def correct(event: AnyEvent) -> AnyEvent:
        if isinstance(event, Content):
            return msgspec.structs.replace(event, stored=event.stored and is_stored(event.digest))
        if (
            isinstance(event, Looked)
            and event.kind == "listing"
            and not is_stored(Digest(event.answer))
        ):
            return msgspec.structs.replace(event, answer="")
        return event

    return [correct(event) for event in events]


def file_identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
