"""The result of recording a command, also when its record is incomplete or part of an outer one."""

from collections.abc import Sequence

from msgspec import Struct

from clew.documents.executions.execution_list import Execution, State
from clew.documents.ids import Uid
from clew.errors import ClewError
from clew.prov.events import Ended
from clew.prov.queries.formats import execution_id


class RecordingResult(Struct, frozen=True):
    """The result of the recorder, which `exec` prints."""

    execution: Execution
    status: int
    """The exit status: the command's own, or 128+n if signal n ended it."""
    joined: str | None = None
    """The outer execution that recorded this command, if there is one."""
    warning: ClewError | None = None
    """Why the record is incomplete although the command ran to its end."""


def unfolded_execution(
    uid: Uid,
    command: Sequence[str],
    *,
    number: int | None = None,
    name: str | None = None,
    state: State = "broken",
    ended: Ended | None = None,
) -> Execution:
    """The document of an execution that is not in the graph. `ended` is its last event if the
    record is complete and only waits to be folded."""
    if ended is not None:
        state = "failed" if ended.status != 0 else "done"
    return Execution(
        id=None if number is None else execution_id(number),
        uid=Uid(uid),
        name=name,
        command=tuple(command),
        state=state,
        status=ended.status if ended else None,
        signal=ended.signal if ended else None,
    )
