"""The metrics of executions, from the files that they wrote, and why those that failed did.

Files are untrusted input: large ones are skipped, and so is what is not a number.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from clew.api.metric_collection import EVENT_FILE, METRICS_FILE, read_metrics_file
from clew.api.tensorboard_events import read_scalars
from clew.documents.ids import Digest
from clew.errors import ClewError
from clew.prov.graph import Graph
from clew.prov.row_keys import digest_text
from clew.server.catalogue.activities.summary_row import (
    COMPLETE,
    ENDED,
    SummaryRow,
    clean,
    distinct,
    metric_values,
)
from clew.store import Store

_WRITTEN = """
WITH p AS (SELECT CAST(? AS TEXT) AS a, CAST(? AS TEXT) AS b, CAST(? AS TEXT) AS c),
s AS MATERIALIZED (SELECT id, execution FROM started WHERE execution IN ({}))
SELECT s.execution, l.locator, c.digest, c.size
FROM p CROSS JOIN s CROSS JOIN generated g CROSS JOIN version v CROSS JOIN location l
CROSS JOIN content c
WHERE g.activity = s.id AND v.id = g.version AND l.id = v.location AND c.version = v.id
AND (l.locator LIKE p.a OR l.locator LIKE p.b OR l.locator LIKE p.c) AND c.stored = 1
ORDER BY v.ordinal
"""
"""It begins with the executions, because many thousand may have written a file of the same path:
SQLite keeps the order of cross joins, and PostgreSQL that of the materialized part."""
_PATTERNS = (f"%/{METRICS_FILE}", f"%/{EVENT_FILE}%", "stream:%/stderr")
_LARGEST_FILE = 8 << 20
_ERROR_BYTES = 4096
"""The last part of stderr, whose last line says why the command failed."""


def add_metrics(graph: Graph, store: Store, rows: Iterable[SummaryRow]) -> list[SummaryRow]:
    """The rows of ended executions, complete; others as they are."""
    rows = list(rows)
    ended = [row.id for row in rows if row.progress == ENDED]
    files: dict[int, dict[str, tuple[Digest, int]]] = {key: {} for key in ended}
    for key, locator, digest, size in graph.connection.rows_in(_WRITTEN, ended, before=_PATTERNS):
        text = digest_text(digest)
        if text is not None and size:
            files[key][locator] = (text, size)  # the last version counts
    return [_complete(row, files[row.id], store) if row.progress == ENDED else row for row in rows]


def _complete(row: SummaryRow, files: dict[str, tuple[Digest, int]], store: Store) -> SummaryRow:
    metrics: dict[str, float] = {}
    error = row.error
    for locator, (digest, size) in files.items():
        name = locator.rsplit("/", 1)[-1]
        with suppress(ClewError):  # damaged, or collected meanwhile
            if locator.startswith("stream:"):
                if row.state == "failed":
                    start = max(0, size - _ERROR_BYTES)
                    error = _last_line(b"".join(store.read_part(digest, start, size))) or error
            elif size <= _LARGEST_FILE and name == METRICS_FILE:
                metrics |= read_metrics_file(store.read_whole(digest))
            elif size <= _LARGEST_FILE and name.startswith(EVENT_FILE):
                scalars = read_scalars(store.read_whole(digest))
                metrics |= {tag: series[-1][1] for tag, series in scalars.items()}
    values = distinct([*row.values, *metric_values(metrics)])
    return replace(row, progress=COMPLETE, error=error, values=values)


def _last_line(data: bytes) -> str | None:
    lines = data.decode(errors="replace").splitlines()
    return next((clean(line.strip()) for line in reversed(lines) if line.strip()), None)
