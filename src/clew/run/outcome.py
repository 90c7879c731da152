"""The result of recording a command, also when its record is incomplete or part of an outer one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from clew.errors import ClewError
from clew.prov.events import Ended


class RecordingResult(Struct, frozen=True):
    """What the recorder returns, and `exec` prints."""

    execution: dict[str, Any]
    """The execution, in the shape of `--json`."""
    status: int
    """The exit status: the command's own, or 128+n if signal n ended it."""
    joined: str | None = None
    """The outer execution that recorded this command, if there is one."""
    warning: ClewError | None = None
    """Why the record is incomplete although the command ran to its end."""


def unfolded_execution(
    uid: str,
    command: Sequence[str],
    *,
    number: int | None = None,
    name: str | None = None,
    state: str = "broken",
    ended: Ended | None = None,
) -> dict[str, Any]:
    """The document of an execution that is not in the graph. `ended` is its last event if the
    record is complete and only waits to be folded."""
    if ended is not None:
        state = "failed" if ended.status != 0 else "done"
    known: dict[str, Any] = {
        "id": None if number is None else f"e{number}",
        "uid": uid,
        "name": name,
        "command": list(command),
        "state": state,
        "status": ended.status if ended else None,
        "signal": ended.signal if ended else None,
        "kind": "reference",
        "made_elsewhere": False,
        "signed_by": None,
    }
    rest = ("cwd", "agent", "started", "ended", "seconds", "parent")
    totals = ("collection", "processes", "inputs", "outputs", "bytes", "new_bytes")
    return {**dict.fromkeys((*rest, *totals)), **known}
