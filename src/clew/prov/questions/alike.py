"""Programs that were started by the same words in the same folder, in any execution."""

from __future__ import annotations

from collections.abc import Sequence

from clew.prov.graph import Graph
from clew.prov.keys import keyer, words_name

_MOST = 24
_ALIKE = f"""
SELECT x.uid, s.id FROM started s JOIN execution x ON x.id = s.execution
WHERE s.words = ? AND x.project = ? ORDER BY s.at DESC LIMIT {_MOST}
"""  # noqa: S608 (a number of our own)


def started_alike(
    graph: Graph, program: str, command: Sequence[str], cwd: str
) -> list[tuple[str, int]]:
    """(execution, process) of each, the latest first, and not more than could be of use."""
    words = keyer(graph.project_uid, "words")(words_name(program, command, cwd))
    rows = graph.connection.rows(_ALIKE, (words, graph.project))
    return [(str(uid), int(key)) for uid, key in rows]
