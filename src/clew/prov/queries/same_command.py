"""Find programs that were started with the same command in the same directory.

Records of another party are untrusted: they may claim that a command makes other bytes than it
does. So an imported execution counts only if the caller names it, or if a known signer signed it.
So does a repeat of one: the command that was repeated is not trusted either.
"""

# ruff: noqa: S608  (only our own constant and placeholders are put into the SQL)

from collections.abc import Sequence

from clew.documents.ids import Uid
from clew.prov.graph import Graph
from clew.prov.row_keys import activity_key, command_name, key_function
from clew.prov.tables import IMPORTED

_LIMIT = 24
_ANCESTORS = f"""
WITH RECURSIVE line (id, parent, made_elsewhere) AS (
  SELECT x.id, s.parent, x.made_elsewhere
  FROM execution x JOIN started s ON s.id = x.id WHERE x.id = ?
  UNION
  SELECT x.id, s.parent, x.made_elsewhere
  FROM line JOIN execution x ON x.id = line.parent JOIN started s ON s.id = x.id
  WHERE line.made_elsewhere <> {IMPORTED}
) SELECT id FROM line
"""
_SAME_COMMAND = f"""
SELECT x.uid, s.id FROM started s JOIN execution x ON x.id = s.execution
WHERE s.words = ? AND x.project = ? AND (x.made_elsewhere = 0 OR x.id IN ({_ANCESTORS}) OR EXISTS (
  SELECT 1 FROM signature g WHERE g.execution = x.id AND g.key IN ({{}})))
ORDER BY s.at DESC LIMIT ?
"""


def find_same_command(
    graph: Graph, program: str, command: Sequence[str], cwd: str, *, believed: Uid
) -> list[tuple[Uid, int]]:
    """(execution, process) of the latest ones, the newest first.

    `believed` is the uid of an execution that is trusted even if it was imported, with those that
    it repeats according to this project: an imported record may claim any parent.
    """
    words = key_function(graph.project_uid, "words")(command_name(program, command, cwd))
    keys = list(graph.signers) or [""]
    rows = graph.connection.rows(
        _SAME_COMMAND.replace("{}", ",".join("?" * len(keys))),
        (words, graph.project, activity_key(graph.project_uid, believed), *keys, _LIMIT),
    )
    return [(Uid(uid), int(key)) for uid, key in rows]
