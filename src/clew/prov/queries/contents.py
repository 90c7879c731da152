"""Find the executions that produced content, their inputs, and the content that must be kept."""

from typing import NamedTuple

from clew.documents.ids import Digest, Locator
from clew.prov.event_numbers import MOVES_SQL
from clew.prov.graph import Graph
from clew.prov.locators import path_of
from clew.prov.queries.formats import STREAM
from clew.prov.row_keys import digest_bytes, digest_text
from clew.safe_path import KERNEL_DIRECTORIES

_MADE = """
SELECT DISTINCT c.digest, x.id, x.number, l.locator, x.made_elsewhere
FROM content c JOIN version v ON v.id = c.version JOIN execution x ON x.id = v.execution
JOIN location l ON l.id = v.location
WHERE c.digest = ? AND x.project = ?
AND EXISTS (SELECT 1 FROM generated g WHERE g.version = v.id)
AND EXISTS (SELECT 1 FROM ended e WHERE e.activity = x.id)
ORDER BY x.made_elsewhere, x.number, l.locator
"""
_NEEDED = f"""
SELECT DISTINCT l.locator, c.digest FROM version v JOIN location l ON l.id = v.location
JOIN used u ON u.version = v.id LEFT JOIN content c ON c.version = v.id
WHERE v.execution = ? AND v.maker = v.execution AND v.ordinal = 1
AND u.how NOT IN {MOVES_SQL}
"""  # noqa: S608
_PRODUCTS = """
SELECT DISTINCT c.digest FROM version v JOIN content c ON c.version = v.id
WHERE v.execution = ? AND EXISTS (SELECT 1 FROM generated g WHERE g.version = v.id)
"""
_PLACES = """
SELECT DISTINCT l.locator, c.size FROM content c JOIN version v ON v.id = c.version
JOIN execution x ON x.id = v.execution JOIN location l ON l.id = v.location
WHERE c.digest = ? AND x.project = ?
"""


class ProducedContent(NamedTuple):
    """A content that an execution made, and where."""

    digest: Digest
    execution: int
    number: int
    locator: Locator


def find_producers(graph: Graph, digest: Digest) -> list[ProducedContent]:
    """Where these bytes were made, by executions that have ended: by those that were recorded
    here first, and of these by the first."""
    rows = graph.connection.rows(_MADE, (digest_bytes(digest), graph.project))
    return [ProducedContent(digest, int(key), int(n), Locator(at)) for _, key, n, at, _ in rows]


def list_inputs(graph: Graph, execution: int) -> list[tuple[Locator, Digest | None]]:
    """List what an execution found and read: locators, and digests where they are known."""
    rows = graph.connection.rows(_NEEDED, (execution,))
    found = ((Locator(at), digest_text(digest)) for at, digest in rows)
    return [(at, digest) for at, digest in found if _is_input(at, digest)]


def list_output_digests(graph: Graph, execution: int) -> frozenset[Digest]:
    """All bytes that an execution made, as far as they are known."""
    rows = graph.connection.rows(_PRODUCTS, (execution,))
    return frozenset(text for (digest,) in rows if (text := digest_text(digest)) is not None)


def list_locations(graph: Graph, digest: Digest) -> list[tuple[Locator, int]]:
    """List the places where these bytes were seen, and their size."""
    rows = graph.connection.rows(_PLACES, (digest_bytes(digest), graph.project))
    return [(Locator(at), int(size)) for at, size in rows]


def _is_input(locator: Locator, digest: Digest | None) -> bool:
    """Files and stdin; whether a terminal was read is unknown."""
    path = path_of(locator)
    if path is None:
        return digest is not None and locator.startswith(STREAM)
    return not path.startswith(KERNEL_DIRECTORIES)


_DIGESTS = """
SELECT DISTINCT c.digest FROM execution x JOIN version v ON v.execution = x.id
JOIN content c ON c.version = v.id WHERE x.project = ? AND c.stored = 1
"""
_LISTINGS = """
SELECT DISTINCT l.answer FROM execution x JOIN started s ON s.execution = x.id
JOIN looked l ON l.activity = s.id WHERE x.project = ? AND l.kind = 'listing' AND l.answer <> ''
"""
_SIGNED = """
SELECT DISTINCT g.events FROM execution x JOIN signature g ON g.execution = x.id WHERE x.project = ?
"""


def list_live_digests(graph: Graph, execution: int | None = None) -> set[Digest]:
    """The digests that the project's executions (or the one with this key) name as stored: of
    versions, of directory listings, and of signed events."""
    condition = "" if execution is None else " AND x.id = ?"
    about = (graph.project,) if execution is None else (graph.project, execution)
    found = graph.connection.rows(_DIGESTS + condition, about)
    named = {text for (stored,) in found if (text := digest_text(stored)) is not None}
    for query in (_LISTINGS, _SIGNED):
        named |= {Digest(answer) for (answer,) in graph.connection.rows(query + condition, about)}
    return named
