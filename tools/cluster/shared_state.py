"""What all clusters of one machine share: a lock, and notes in /run.

One cluster at a time is brought up or taken down. Notes keep what is needed to remove a cluster
whose folder is gone. A reboot empties /run, and ends all that the notes are about.
"""

from contextlib import AbstractContextManager, suppress
from pathlib import Path

from tools.cluster.binaries import locked

NOTES = Path("/run/clew-clusters")


def lock_machine() -> AbstractContextManager[None]:
    """No other process brings a cluster up or down meanwhile. The lock is on a folder that exists
    anyway, so nothing is left behind."""
    return locked(NOTES.parent)


def write_note(name: str, text: str) -> None:
    NOTES.mkdir(exist_ok=True)
    part = NOTES / f"{name}.part"
    part.write_text(text)
    part.rename(NOTES / name)


def read_note(name: str) -> str | None:
    try:
        return (NOTES / name).read_text()
    except FileNotFoundError:
        return None


def delete_note(name: str) -> None:
    for file in (NOTES / name, NOTES / f"{name}.part"):
        file.unlink(missing_ok=True)
    with suppress(OSError):  # other notes exist, or the folder does not
        NOTES.rmdir()
