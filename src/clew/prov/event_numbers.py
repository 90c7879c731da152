"""The numbers of an execution's events, and the kinds of moves.

Apart from `events`, because queries need these and msgspec is slow to load.
"""

from typing import Final

# An event's number is part of the key of its row, so the recorder's own events have fixed numbers:
# a recovery that records a fact again writes the same row. A witness counts from FIRST_WITNESSED.
# The events of a pipeline run are simply counted from 1.
STARTED: Final = 1
ENDED: Final = 2
FIRST_STREAM: Final = 3
"""The first kept stream (stdin, stdout, stderr); the others follow as 4 and 5."""
LOST_CONTENT: Final = 6
LOST_TRACE: Final = 7
FORKED: Final = 8
TASK_PARAMETERS: Final = 9
UNSEEN_CONTAINER: Final = 10
LEFT_OUT: Final = 11
CELL: Final = 12
"""The start of a notebook's cell; its end, its variables and its outputs follow as 13, 14, 15."""
FIRST_WITNESSED: Final = 16

MOVES: Final = frozenset({"rename", "link", "exchange", "metadata"})
"""Values of `how` of a version that is made from one other version without reading its bytes. The
other one is used with the same `how`, by the same activity, at the same time."""

MOVES_SQL: Final = f"({', '.join(repr(how) for how in sorted(MOVES))})"
