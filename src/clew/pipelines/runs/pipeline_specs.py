"""The texts of compiled pipelines, each stored once for all its versions and runs."""

import hashlib
from collections.abc import Iterable

from clew.prov.graph import Graph

# An existing row is not changed, but locked until the transaction ends, so that a concurrent
# `delete_unused` waits and then sees the new reference to it.
_STORE = """
INSERT INTO spec (project, digest, text) VALUES (?, ?, ?)
ON CONFLICT (project, digest) DO UPDATE SET text = excluded.text WHERE 1 = 0
"""
_LOCK = "UPDATE spec SET digest = digest WHERE project = ? AND digest = ?"
_TEXT = "SELECT text FROM spec WHERE project = ? AND digest = ?"
_TEXTS = "SELECT digest, text FROM spec WHERE project = ? AND digest IN ({})"
_DELETE_UNUSED = """
DELETE FROM spec WHERE project = ? AND digest = ?
AND NOT EXISTS (SELECT 1 FROM pipeline_version v WHERE v.spec = digest)
AND NOT EXISTS (SELECT 1 FROM run_request r WHERE r.spec = digest)
AND NOT EXISTS (SELECT 1 FROM schedule s WHERE s.spec = digest)
"""


def store_spec(graph: Graph, text: str) -> str:
    """Store a pipeline and return its digest. Call within a transaction."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    graph.connection.rows(_STORE, (graph.project, digest, text))
    return digest


def text_of(graph: Graph, digest: str) -> str:
    row = graph.connection.row(_TEXT, (graph.project, digest))
    assert row is not None, "a spec is stored as long as something refers to it"
    return str(row[0])


def texts_of(graph: Graph, digests: Iterable[str]) -> dict[str, str]:
    rows = graph.connection.rows_in(_TEXTS, digests, before=(graph.project,))
    return {str(digest): str(text) for digest, text in rows}


def delete_unused(graph: Graph, digest: str) -> None:
    """Delete the text if nothing refers to it any more. Call within a transaction."""
    graph.connection.rows(_LOCK, (graph.project, digest))
    graph.connection.rows(_DELETE_UNUSED, (graph.project, digest))
