"""The time after which this machine stops what is not used.

It is kept with the project, so that it holds for the next `clew up` as well. `--idle-minutes`
replaces it for one start.
"""

from pathlib import Path

import msgspec

from clew.atomic_file import write_atomically


class _Stored(msgspec.Struct):
    idle_minutes: float | None = None


class IdleLimit:
    """Minutes; None: nothing is stopped."""

    def __init__(self, path: Path, minutes: float | None = None) -> None:
        """`minutes`: in place of the stored ones."""
        self._path = path
        self._minutes = _load(path) if minutes is None else minutes

    @property
    def minutes(self) -> float | None:
        return self._minutes

    def save(self, minutes: float | None) -> None:
        write_atomically(self._path, msgspec.json.encode(_Stored(minutes)))
        self._minutes = minutes


def _load(path: Path) -> float | None:
    """None as well if the file cannot be read: stopping too much is worse than too little."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Stored).idle_minutes
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found is not None and found > 0 else None
