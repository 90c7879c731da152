"""The user's own files as executions left them: the last recorded version of each path.

Repeats run in a sandbox and leave the files of the machine alone, so they do not count. Files that
the last execution deleted do not count either.
"""

import stat
from dataclasses import dataclass

from clew.documents.ids import Digest, ExecutionId
from clew.prov.file_classes import classify
from clew.prov.graph import Graph
from clew.prov.locators import path_of
from clew.prov.queries.formats import execution_id
from clew.prov.row_keys import digest_text

_LAST_VERSIONS = """
SELECT l.locator, latest.number, c.digest, c.size, c.mode FROM (
  SELECT v.id, v.location, v.at, x.number, row_number() OVER (
    PARTITION BY v.location ORDER BY v.at DESC, x.number DESC, v.ordinal DESC) AS place
  FROM execution x JOIN started s ON s.id = x.id JOIN version v ON v.execution = x.id
  WHERE x.project = ? AND x.made_elsewhere <= ? AND coalesce(s.mode, 'reference') = 'reference'
) latest
JOIN location l ON l.id = latest.location JOIN content c ON c.version = latest.id
WHERE latest.place = 1 AND c.package IS NULL AND l.locator LIKE ?
AND NOT EXISTS (SELECT 1 FROM invalidated i WHERE i.version = latest.id)
ORDER BY latest.at DESC
"""


@dataclass(frozen=True)
class TrackedFile:
    path: bytes
    execution: ExecutionId
    """The id of the execution that accessed it last."""
    digest: Digest
    size: int


def list_tracked_files(graph: Graph, machine: str, *, pulled: bool = False) -> list[TrackedFile]:
    """The user's own files on `machine`, those that were used last first.

    `pulled`: also those of executions that were recorded elsewhere.
    """
    about = (graph.project, 1 if pulled else 0, f"file://{machine}/%")
    files = []
    for locator, number, raw_digest, size, mode in graph.connection.rows(_LAST_VERSIONS, about):
        path, digest = path_of(locator), digest_text(raw_digest)
        if path is None or digest is None or not stat.S_ISREG(mode):
            continue
        if classify(path, None, executable=bool(mode & 0o111)) not in ("package", "system"):
            files.append(TrackedFile(path, execution_id(number), digest, size))
    return files
