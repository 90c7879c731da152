"""How an execution went, also when its record could not be completed or is not ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from clew.errors import ClewError
from clew.prov.events import Ended


class Outcome(Struct, frozen=True):
    """How it went."""

    execution: dict[str, Any]
    """The execution, in the shape of `--json`."""
    status: int
    """What to exit with: the command's own status, or 128+n when signal n ended it."""
    joined: str | None = None
    """The execution around this one that recorded it, where there is one."""
    warning: ClewError | None = None
    """Why the record is not whole, though the command ran to its end."""


def unfolded_execution(
    uid: str,
    command: Sequence[str],
    *,
    number: int | None = None,
    name: str | None = None,
    state: str = "broken",
    ended: Ended | None = None,
) -> dict[str, Any]:
    """The shape of an execution that the graph could not be asked about. `ended`: its last event,
    where the whole record is kept and only waits to be folded."""
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
