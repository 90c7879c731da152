"""What the clusters of one machine have in common, whatever folder and cache each of them has.

They come and go one at a time, and leave notes in /run of what must be known to take one away
although its folder is gone. A boot empties /run, and ends all that the notes tell of.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from pathlib import Path

from tools.cluster.binaries import locked

NOTES = Path("/run/clew-clusters")


def turn() -> AbstractContextManager[None]:
    """Meanwhile nobody else brings one up or takes one down. The lock is a folder that is there
    anyway: it leaves nothing."""
    return locked(NOTES.parent)


def note(name: str, text: str) -> None:
    NOTES.mkdir(exist_ok=True)
    part = NOTES / f"{name}.part"
    part.write_text(text)
    part.rename(NOTES / name)


def noted(name: str) -> str | None:
    try:
        return (NOTES / name).read_text()
    except FileNotFoundError:
        return None


def forget(name: str) -> None:
    for file in (NOTES / name, NOTES / f"{name}.part"):
        file.unlink(missing_ok=True)
    with suppress(OSError):  # there are others, or it is not there
        NOTES.rmdir()
